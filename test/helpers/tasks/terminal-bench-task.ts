/** The files of a task in terminal-bench's format, by their paths. */
export const terminalBench: Readonly<Record<string, string>> = {
  'task.yaml':
    'instruction: |-\n  Write "hello".\nauthor_email: a@b.c\ndifficulty: easy\ntags:\n  - files\nparser_name: pytest\nmax_agent_timeout_sec: 180.0\nmax_test_timeout_sec: 40.0\n',
  'run-tests.sh': '#!/bin/bash\n[ "$TEST_DIR" = /tests ]\n',
  'solution.sh': '#!/bin/bash\necho hello\n',
  'tests/test_outputs.py': 'def test(): pass\n',
  Dockerfile: 'FROM debian:bookworm\nWORKDIR /srv\n',
  'docker-compose.yaml': 'services:\n  client:\n    build:\n      dockerfile: Dockerfile\n    image: $NAME\n',
};
