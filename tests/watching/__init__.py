"""The app that watches statements, installed by DUCTOR_APPS in every process of the suite."""
