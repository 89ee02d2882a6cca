import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, cp, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { pathsBelow } from '../../../infra/paths.ts';
import { isRunning } from '../../../infra/process/process-identity.mjs';
import { openStackId } from '../../../infra/stack.ts';
import { createDirectory } from '../../../infra/store/directory.ts';
import { connectClient, plainTarget } from '../../../infra/temporal/connection.ts';
import { freePort } from '../../../infra/temporal/ports.ts';
import { isUp, readUpFile, type UpFile } from '../../../workers/up/up-file.ts';
import { retentionSchedule } from '../../../workflows/contracts/retention.ts';
import { until } from '../../helpers/until.ts';

const root = join(import.meta.dirname, '../../..');
const program = join(root, 'workers/cli.ts');

describe('a stack as a user operates it', () => {
  let home: string;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-operate-'));
  });
  after(async () => {
    await temper('down').ended;
    await rm(home, { recursive: true, force: true });
  });

  function start(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const others = Object.entries(process.env).filter(([name]) => !/^(TEMPORAL_|TEMPER_|npm_)/.test(name));
    const child = spawn(command, args, {
      cwd: root,
      env: {
        ...Object.fromEntries(others),
        TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml',
        TEMPER_HOME: home,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]).then(
      ([stdout, stderr, [code]]) => ({ stdout, stderr, code }),
    );
    return { child, ended };
  }

  const temper = (...args: readonly string[]) => start(process.execPath, [program, ...args]);

  /** Writes the module of an agent of the user's own, which the settings of the stack alone name. */
  async function writeAgent(): Promise<string> {
    const path = join(home, 'agent.mjs');
    const fields = "name: 'some-own-agent', description: 'my agent', usesModel: false, needsSolution: false";
    const command = "command: () => ({ argv: ['true'], env: {}, files: new Map() })";
    await writeFile(
      path,
      `export default { ${fields}, runtimes: async () => [], ${command}, stopReason: () => 'submitted' };`,
    );
    return path;
  }

  async function runsTemporal(): Promise<void> {
    const listed = await temper('temporal', 'schedule', 'list', '--output', 'json').ended;
    assert.equal(listed.code, 0, listed.stderr);
    assert.ok(listed.stdout.includes(retentionSchedule), listed.stdout);
    const unknown = await temper('temporal', 'workflow', 'describe', '--workflow-id', 'unknown').ended;
    assert.deepEqual([unknown.code, /not found/.test(unknown.stderr)], [1, true], unknown.stderr);
  }

  async function refusesOtherHome({ ports }: UpFile): Promise<void> {
    const other = `${home}-other`;
    try {
      const env = { TEMPER_HOME: other, TEMPER_TEMPORAL_PORT: String(ports.temporal) };
      for (const begin of [async () => '', () => openStackId(pathsBelow(other), createDirectory(other))]) {
        await begin();
        const { code, stderr } = await start(process.execPath, [program, 'status'], env).ended;
        assert.equal(code, 1);
        assert.match(
          stderr,
          new RegExp(`no stack runs on ${other}, and 127.0.0.1:${ports.temporal} is .* another one`),
        );
        assert.doesNotMatch(stderr, /delete/);
      }
    } finally {
      await rm(other, { recursive: true, force: true });
    }
  }

  async function upFile(): Promise<UpFile> {
    const up = await readUpFile(join(home, 'up.json'));
    assert.ok(up !== null && isUp(up));
    return up;
  }

  const processesOf = ({ supervisor, parts }: UpFile) => [
    supervisor,
    ...parts.flatMap(({ process: one }) => one ?? []),
  ];

  it('is up when `temper up --detach` returns, and is stopped by `temper down`, which names its processes', async () => {
    const env = { TEMPER_AGENTS: await writeAgent() };
    const { code, stdout, stderr } = await start(process.execPath, [program, 'up', '--detach', '--port', 'auto'], env)
      .ended;
    assert.equal(code, 0, stderr);
    assert.match((await temper('agents', 'list').ended).stdout, /^some-own-agent +my agent/m);
    assert.match(stderr, /^starting temporal$/m);
    assert.match(stdout, /^UI +http/m);
    const up = await upFile();
    assert.equal(up.state, 'running');
    assert.ok(processesOf(up).every(isRunning));

    const second = await temper('up', '-d').ended;
    assert.equal(second.code, 1);
    assert.match(second.stderr, new RegExp(`already runs on .*process ${up.supervisor.pid}.*temper down`));

    await followsLogs();
    await runsTemporal();
    await refusesOtherHome(up);
    const down = await temper('down', '--json').ended;
    assert.equal(down.code, 0, down.stderr);
    const { stopped } = JSON.parse(down.stdout);
    assert.deepEqual(
      stopped.map(({ name }: { readonly name: string }) => name).sort(),
      ['supervisor', ...up.parts.map(({ name }) => name)].sort(),
    );
    assert.ok(stopped.every(({ killed }: { readonly killed: boolean }) => !killed));
    assert.ok(!processesOf(up).some(isRunning));
    const again = await temper('down').ended;
    assert.deepEqual([again.code, again.stderr], [1, `temper: no stack runs on ${home}\n`]);
  });

  it('continues in a copy of its home, with its workflows and its identity', async () => {
    const restored = `${home}-restored`;
    try {
      await cp(home, restored, { recursive: true });
      const args = ['--detach', '--port', 'auto', '--parts', 'temporal', '--home', restored, '--json'];
      const up = await temper('up', ...args).ended;
      assert.equal(up.code, 0, up.stderr);
      const { addresses, parts } = JSON.parse(up.stdout);
      assert.deepEqual(
        parts.map(({ name }: { readonly name: string }) => name),
        ['temporal'],
      );
      const { client, close } = await connectClient(plainTarget(addresses.temporal, addresses.namespace));
      const { memo } = await client.schedule.getHandle(retentionSchedule).describe();
      await close();
      assert.equal(memo?.stack, JSON.parse(await readFile(join(restored, 'stack.json'), 'utf8')).id);
    } finally {
      await temper('down', '--home', restored).ended;
      await rm(restored, { recursive: true, force: true });
    }
  });

  async function followsLogs(): Promise<void> {
    const all = await temper('logs', '--lines', '1').ended;
    for (const name of ['control', 'gateway', 'temporal', 'up'])
      assert.match(all.stdout, new RegExp(`^${name} +\\| `, 'm'));
    const one = await temper('logs', 'control', '-n', '2').ended;
    const lines = one.stdout.trim().split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).part),
      ['control', 'control'],
    );
    const unknown = await temper('logs', 'nothing').ended;
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /no log of nothing in .*: expected control, gateway/);

    const { child, ended } = temper('logs', 'host', '--follow', '--lines', '0');
    let seen = '';
    child.stdout.on('data', (chunk) => (seen += chunk));
    const path = join(home, 'logs/host.log');
    await until(async () => {
      await appendFile(path, 'marked\n');
      return seen.includes('marked');
    });
    await truncate(path);
    await until(async () => {
      await appendFile(path, 'after the cut\n');
      return seen.includes('after the cut');
    });
    child.kill('SIGINT');
    await ended;
  }

  it('that does not start leaves no process, and `temper up --detach` says why', async () => {
    const port = await freePort();
    const other = createServer().listen(port, '127.0.0.1');
    await once(other, 'listening');
    try {
      const { ended } = start(process.execPath, [program, 'up', '-d'], {
        TEMPER_TEMPORAL_PORT: String(await freePort()),
        TEMPER_UI_PORT: String(port),
      });
      const { code, stderr } = await ended;
      assert.equal(code, 1);
      assert.match(
        stderr,
        new RegExp(`^temper: port ${port} of 127.0.0.1.*the Temporal UI.*\\n.*its log is .*up.log`, 'm'),
      );
      assert.equal(await readUpFile(join(home, 'up.json')), null);
    } finally {
      other.close();
    }
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`ends when the \`npx\` that started it receives a ${signal}`, async () => {
      const { child, ended } = start('npx', ['temper', 'up', '--port', 'auto']);
      const up = await until(async () => {
        const found = await readUpFile(join(home, 'up.json'));
        return found !== null && found.parts.length > 0 ? found : null;
      });
      child.kill(signal);
      await until(() => !processesOf(up).some(isRunning));
      await until(async () => (await readUpFile(join(home, 'up.json'))) === null);
      await ended;
    });
  }

  it('is shared by two commands that start at the same time, and ends after both', async () => {
    const args = [
      'rollout',
      '--tasks',
      'generated:test/1?count=2',
      '--agent',
      'oracle',
      '--sandbox',
      'local',
      '--json',
    ];
    const runs = await Promise.all([temper(...args).ended, temper(...args).ended]);
    for (const { code, stdout, stderr } of runs) {
      assert.equal(code, 0, stderr);
      const rows = stdout.trim().split('\n');
      assert.deepEqual(
        rows.map((row) => JSON.parse(row).outcome),
        ['scored', 'scored'],
        stderr,
      );
    }
    const starters = runs.filter(({ stderr }) => stderr.includes('starting temporal'));
    assert.equal(starters.length, 1, runs.map(({ stderr }) => stderr).join('\n---\n'));
    assert.equal(await readUpFile(join(home, 'up.json')), null);
  });
});
