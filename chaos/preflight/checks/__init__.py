"""One file per check; each exposes ``CHECK``. tools/doctor_page.py lists them in docs/doctor.md."""
