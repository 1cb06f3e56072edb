"""A handler author's app for tests that kill a worker process: installed there by DUCTOR_APPS."""
