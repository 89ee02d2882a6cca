import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { withRoot } from '../../../infra/harbor/with-root.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const task = (files: Readonly<Record<string, string>>) =>
  treeOf({ 'instruction.md': 'Do it.', 'tests/test.sh': 'true', ...files });

/** Returns the account of the agent with root as the default. */
function userOf(toml: string, dockerfile?: string, others: Readonly<Record<string, string>> = {}): string | undefined {
  const files = { 'task.toml': toml, ...(dockerfile !== undefined && { 'environment/Dockerfile': dockerfile }) };
  return readHarborTask(withRoot(task({ ...files, ...others }))).description.user;
}
const named = '[environment]\ndocker_image = "x"\n';

it('makes the agent root where the task names no account', () => {
  assert.equal(readHarborTask(task({ 'task.toml': named })).description.user, undefined);
  assert.equal(userOf(named), 'root');
  assert.equal(userOf(`[agent]\ntimeout_sec = 60.0\n${named}`), 'root');
  assert.equal(userOf('version = "1.0"\n', 'FROM debian AS a\nUSER app\nFROM debian\nRUN true\n'), 'root');
  assert.equal(userOf('version = "1.0"\n', 'FROM debian\nUSER app\nRUN true\nUSER root:root\n'), 'root');
});

it('leaves the account that the task or its Dockerfile names', () => {
  assert.equal(userOf(`[agent]\nuser = "app"\n${named}`), undefined);
  assert.equal(userOf('version = "1.0"\n', 'FROM debian\nRUN true\nUSER 1000:1000\n'), undefined);
});

it('leaves the account that the compose file or the Dockerfile of its build names', () => {
  const composed = (main: string, dockerfile = 'FROM debian\nUSER app\n') =>
    userOf('version = "1.0"\n', undefined, {
      'environment/docker-compose.yaml': `services: {main: {${main}}}\n`,
      'environment/app/Dockerfile': dockerfile,
    });
  assert.equal(composed('build: ./app'), undefined);
  assert.equal(composed('build: ./app', 'FROM debian\n'), 'root');
  assert.equal(composed('build: {dockerfile_inline: "FROM debian\\nUSER 1000\\n"}'), undefined);
  assert.equal(composed(`build: ./app, user: "\${UID}:0"`, 'FROM debian\n'), undefined);
  assert.equal(composed('build: ./app, user: 0'), 'root');
});

it('makes the agents of all steps root, unless one of them has another account', () => {
  const stepped = (...users: readonly string[]) =>
    userOf(
      `${named}${users.map((user, index) => `[[steps]]\nname = "s${index}"\nagent = { ${user} }\n`).join('')}`,
      undefined,
      { 'steps/s0/instruction.md': 'Do it.', 'steps/s1/instruction.md': 'Do more.' },
    );
  assert.equal(stepped('', 'user = "root"'), 'root');
  assert.equal(stepped('', 'user = "app"'), undefined);
});

it('leaves all else as it was', () => {
  const toml = `schema_version = "1.4"
artifacts = ["/out", { source = "/logs/x" }]
[metadata]
since = 2026-01-02T03:04:05Z
weight = 1.0
[agent]
timeout_sec = 12.5
${named}memory_mb = 300
[environment.env]
A = "$5 \\"quoted\\""
`;
  const before = readHarborTask(task({ 'task.toml': toml }));
  const after = readHarborTask(withRoot(task({ 'task.toml': toml })));
  assert.deepEqual({ ...after, description: before.description }, before);
  assert.deepEqual(after.description, { ...before.description, user: 'root' });
});

it('reports a file that is no TOML, and adds none', () => {
  assert.throws(() => withRoot(treeOf({ 'task.toml': 'a = = b' })), { type: 'MalformedTask' });
  assert.equal(withRoot(new Map()).size, 0);
});
