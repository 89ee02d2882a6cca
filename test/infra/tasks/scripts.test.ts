import assert from 'node:assert/strict';
import { it } from 'node:test';
import { filesOf } from '../../../infra/exported/task-source.ts';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { needs } from '../../../infra/tasks/task-needs.ts';

const toml = (agent: string, tests: string): string =>
  `[environment]\nworkdir = "/app"\n[agent]\nnetwork_mode = "${agent}"\n[verifier]\nnetwork_mode = "${tests}"\n`;

/** Returns where a task whose tests have a network, apart from these files, shows that it runs a program that ignores proxies. */
function placeIn(own: Readonly<Record<string, string>>): string | null {
  const task = readHarborTask(
    filesOf({
      'instruction.md': 'Do it.',
      'task.toml': toml('no-network', 'public'),
      'environment/Dockerfile': 'FROM debian\n',
      'solution/solve.sh': 'ssh b.example ls\n',
      'tests/test.sh': 'true\n',
      ...own,
    }),
  );
  const { isNeeded, place } = needs['programs that ignore proxies'];
  assert.equal(isNeeded(task), place(task) !== null);
  return place(task);
}

it('tests, solution and build that may have a network are searched for programs that ignore proxies', () => {
  const ofTests = (script: string): string | null => placeIn({ 'tests/test.sh': `${script}\n` });
  for (const line of [
    'cd x && ping -c1 b.example',
    'git clone --depth 1 git@b.example:c',
    'if (timeout 60 ./gradlew test) >log; then true; fi',
    'A=b mvn -B package',
  ])
    assert.equal(ofTests(`#!/bin/bash\n${line}`), `tests/test.sh: ${line}`);
  assert.equal(
    placeIn({ 'task.toml': toml('public', 'no-network'), 'solution/solve.sh': 'scp a@b.example:c .\n' }),
    'solution/solve.sh: scp a@b.example:c .',
  );
  assert.equal(placeIn({ 'environment/Dockerfile': 'FROM debian\nRUN sbt update\n' }), 'Dockerfile: sbt update');
});

it('programs that need no proxy, or have no network, ignore none', () => {
  assert.equal(placeIn({ 'task.toml': toml('no-network', 'no-network'), 'tests/test.sh': 'ping b.example\n' }), null);
  for (const line of [
    '# ssh b.example',
    'nc -z localhost 22',
    'service ssh start',
    'mvn -o test',
    'echo host it',
    'curl -I b.example',
  ])
    assert.equal(placeIn({ 'tests/test.sh': `${line}\n` }), null, line);
  const compose = 'services: {main: {build: .}, db: {image: "debian:12"}}\n';
  assert.equal(placeIn({ 'environment/docker-compose.yaml': compose, 'tests/test.sh': 'nc -z db 5432\n' }), null);
});
