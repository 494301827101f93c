#!/bin/sh
# Adds two jobs with nothing but redis-cli: one RPUSH of JSON objects to the queue's inbox.
redis-cli -u "${1:-redis://127.0.0.1:6379}" RPUSH 'sluice:{thumbnails:0}:inbox' \
  '{"data": {"file": "cat.jpg"}}' \
  '{"data": {"file": "urgent.jpg"}, "priority": 0, "id": "urgent.jpg"}'
