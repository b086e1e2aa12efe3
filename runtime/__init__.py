"""What everything else stands on: settings, the state of one application, time, and money as text."""
