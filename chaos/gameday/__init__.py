"""Game days: days, calendars, gates, fleets, manifests and notifications."""
