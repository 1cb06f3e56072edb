"""The app that stands in django-tenants' TENANT_APPS while no handler app keeps models per tenant. It has none."""
