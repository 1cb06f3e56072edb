import django.db.models.deletion
from django.db import migrations, models

import tenants.identity


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=tenants.identity.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("email", models.CharField(max_length=254)),
                ("role", models.CharField(max_length=16)),
                ("hashed_token", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField()),
                ("created_by", models.JSONField()),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "base_manager_name": "objects",
                "default_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Member",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=tenants.identity.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("person_id", models.UUIDField()),
                ("email", models.CharField(max_length=254)),
                ("name", models.CharField(blank=True, max_length=200)),
                ("role", models.CharField(max_length=16)),
                ("joined_at", models.DateTimeField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "base_manager_name": "objects",
                "default_manager_name": "objects",
            },
        ),
    ]
