import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { createDataSetFixture, type DataSetFixture, sweRow } from '../../helpers/tasks/data-set-fixture.ts';
import { terminalBench } from '../../helpers/tasks/terminal-bench-task.ts';

const program = join(import.meta.dirname, '../../../workers/cli.ts');
let fixture: DataSetFixture;
before(async () => {
  fixture = await createDataSetFixture();
  await fixture.writeRows('rows.jsonl', [sweRow, { ...sweRow, instance_id: 'bad', repo: 7 }]);
  await fixture.writeRows('fine.jsonl', [sweRow]);
});
after(() => fixture[Symbol.asyncDispose]());

it('list prints each task of a data set; a broken row fails the command but hides no other row', async () => {
  const { code, stdout, stderr } = await temper('ls', 'swe-bench:./rows.jsonl?image=i:1', '--json');
  assert.equal(code, 1);
  assert.deepEqual(JSON.parse(stdout), {
    id: sweRow.instance_id,
    address: `swe-bench:${fixture.root}/rows.jsonl?image=i:1#${sweRow.instance_id}`,
    image: 'i:1',
    logParser: 'parse_log_pytest',
  });
  assert.match(
    stderr,
    /MalformedTask: .*rows\.jsonl: row 2: repo: expected a repository, such as "owner\/name", got 7/,
  );
  assert.match(stderr, /1 task of .* cannot be used/);
});

it('check prints why tasks of a set are refused, and fails', async () => {
  const { code, stdout, stderr } = await temper('check', 'swe-bench:./rows.jsonl');
  assert.equal(code, 1);
  assert.match(stdout, /^2 tasks: 1 can run here; 1 is refused\n1 image;/);
  assert.match(
    stdout,
    /\n\nrefused, because\n +1 +repo: expected a repository, such as "owner\/name"\n +got 7; for example bad\n/,
  );
  assert.ok(
    stdout.split('\n').every((line) => line.length <= 100),
    stdout,
  );
  assert.match(stderr, /1 task of .* cannot be used/);
});

it('check names the directories that a set leaves out, since they are too deep or have another format', async () => {
  for (const path of ['set/one', 'set/a/two', 'set/a/b/c/d/e/deep', 'set/a/b/c/d/e/deeper'])
    await fixture.write(`${path}/task.toml`, '[environment]\ndocker_image = "x"\n');
  // A file of the other format in a task is part of it.
  for (const path of ['set/one', 'set/one/old', 'set/older']) await fixture.write(`${path}/task.yaml`, '');
  const { stdout } = await temper('check', 'harbor:./set');
  assert.match(stdout, /^2 tasks: /);
  assert.match(
    stdout,
    /left out, with\n +2 +task\.toml below more than 3 groups: [^\n]*\n +for example a\/b\/c\/d\/e\/deep\n/,
  );
  assert.match(stdout, /\n +1 +task\.yaml, which terminal-bench:<directory> reads\n +for example older\n/);
  const yaml = await temper('check', 'terminal-bench:./set', '--json');
  const { tasks, leftOut } = JSON.parse(yaml.stdout) as { readonly tasks: number; readonly leftOut: unknown };
  assert.equal(tasks, 2);
  assert.deepEqual(leftOut, [
    { why: 'task.toml, which harbor:<directory> reads', count: 3, example: 'a/b/c/d/e/deep' },
  ]);
});

it('check says that no sandbox here has the images which tasks need, and does not fail for it', async () => {
  const imagesOf = async (variables: NodeJS.ProcessEnv) => {
    const { code, stdout, stderr } = await temperWith(variables, 'check', 'swe-bench:./fine.jsonl', '--json');
    const { needs } = JSON.parse(stdout) as {
      readonly needs: readonly { readonly need: string; readonly what: string }[];
    };
    return [code, needs.find(({ need }) => need === 'sandboxes with images')?.what ?? stderr] as const;
  };
  const [local, why] = await imagesOf({ TEMPER_SANDBOX: 'local' });
  assert.deepEqual([local, /TEMPER_SANDBOX is local/.test(why)], [0, true], why);
  const [away, without] = await imagesOf({ DOCKER_HOST: 'unix:///nonexistent/docker.sock' });
  assert.deepEqual(
    [away, /Docker is not ready: expected the Docker daemon to answer/.test(without)],
    [0, true],
    without,
  );
});

it('list reads the tasks that a package makes, and says where it looks for one that is missing', async () => {
  await fixture.write('node_modules/@me/tasks/package.json', '{"type": "module", "exports": {"import": "./made.js"}}');
  const source = "export default { tasks: () => [{ id: 'one', files() { throw new Error('broken'); } }] };";
  await fixture.write('node_modules/@me/tasks/made.js', source);
  const made = await temper('ls', 'module:@me/tasks');
  const path = `${fixture.root}/node_modules/@me/tasks/made.js`;
  assert.ok(made.stderr.includes(`MalformedTask: module:${path}#one: ${path}: files() failed: broken`), made.stderr);
  const missing = await temper('ls', 'module:@me/none');
  assert.equal(missing.code, 2);
  assert.match(
    missing.stderr,
    /module:@me\/none is neither a file here nor a package .*Cannot find package '@me\/none'/,
  );
  assert.match((await temper('ls', 'module:./none.js')).stderr, /\/none\.js: no such file/);
});

it('check reads a plain directory of terminal-bench tasks as such', async () => {
  for (const [path, text] of Object.entries(terminalBench)) await fixture.write(`tb/one/${path}`, text);
  const { stdout, stderr } = await temper('check', './tb', '--json');
  assert.equal(JSON.parse(stdout).set, `terminal-bench:${fixture.root}/tb`, stderr);
  for (const [path, text] of Object.entries(terminalBench)) await fixture.write(`grouped/group/one/${path}`, text);
  const grouped = JSON.parse((await temper('check', './grouped', '--json')).stdout);
  assert.deepEqual([grouped.set, grouped.usable], [`terminal-bench:${fixture.root}/grouped`, 1]);
});

it('show prints what a rollout of the task would get, for people and as JSON', async () => {
  const address = `swe-bench:${fixture.root}/fine.jsonl#${sweRow.instance_id}`;
  const { code, stdout } = await temper('show', address);
  assert.equal(code, 0);
  assert.match(stdout, /image +swebench\/sweb\.eval\.x86_64\.pallets_1776_flask-5014:latest/);
  assert.match(
    stdout,
    /graded +from the test log, read by parse_log_pytest: 1 tests must start to pass, 2 must keep passing\n\nRequire a non-empty name/,
  );
  const shown = JSON.parse((await temper('show', `swe-bench:./fine.jsonl#${sweRow.instance_id}`, '--json')).stdout);
  assert.equal(shown.address, address);
  assert.deepEqual(shown.files, { workspace: 0, tests: 3, solution: 2 });
  assert.equal(shown.grading.baseCommit, sweRow.base_commit);
});

it('show says that a generated task is graded by its own tests', async () => {
  const { stdout } = await temper('show', 'generated:test/1/0');
  assert.match(stdout, /graded +by the reward that its tests write/);
});

it('show says that a task is of a later version of the format', async () => {
  const toml = 'schema_version = "1.5"\n[environment]\ndocker_image = "any"\n';
  const files = { 'task.toml': toml, 'instruction.md': 'Do it.', 'tests/test.sh': 'true' };
  for (const [path, text] of Object.entries(files)) await fixture.write(`later/${path}`, text);
  const { stdout } = await temper('show', './later');
  assert.match(stdout, /version +1\.5, which is newer than 1\.4: fields that came later are not read\n/);
  assert.equal(JSON.parse((await temper('show', './later', '--json')).stdout).laterVersion, '1.5');
});

it('--offline names what is missing', async () => {
  const { code, stderr } = await temper('ls', '--offline', 'swe-gym:hub:SWE-Gym/SWE-Gym-Lite?split=train');
  assert.equal(code, 1);
  assert.match(stderr, /hub:SWE-Gym\/SWE-Gym-Lite@main: not in this host's cache \(.*main\.json\)/);
});

it('a file without its format, and a set in place of a task, are refused', async () => {
  const named = await temper('ls', './rows.jsonl');
  assert.deepEqual([named.code, /or a data set such as swe-gym:/.test(named.stderr)], [2, true], named.stderr);
  const set = await temper('show', 'swe-bench:./fine.jsonl');
  assert.deepEqual(
    [set.code, /expected one task, got a data set; name one as .*#<id>/.test(set.stderr)],
    [1, true],
    set.stderr,
  );
});

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const temper = (...args: readonly string[]): Promise<Run> => temperWith({}, ...args);

function temperWith(variables: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<Run> {
  const home = join(fixture.root, '../home');
  const env = { ...process.env, TEMPER_HOME: home, XDG_CACHE_HOME: join(home, 'cache'), ...variables };
  return new Promise((resolve) =>
    execFile(process.execPath, [program, 'tasks', ...args], { cwd: fixture.root, env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    ),
  );
}
