import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, describe, it } from 'node:test';
import Docker from 'dockerode';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import type { SandboxSpec } from '../../../infra/sandbox/sandbox.ts';
import { keeperDirectory } from '../../../infra/sandbox/shell/scripts.ts';
import { agentSpec } from '../../helpers/sandbox/agent-spec.ts';
import { until } from '../../helpers/until.ts';
import { foreground, sandboxContract, sh } from './contract.ts';

const image = 'temper-tasks:bookworm';
const longWait = { timeoutMs: 120_000 };

sandboxContract({
  title: 'docker sandboxes',
  image,
  root: '/nowhere',
  open: (stack) => createDockerProvider({ stack }),
  killRecorder: async (sandbox, key) => {
    const script = `kill -9 -$(cat ${keeperDirectory}/${key}/pid)`;
    spawnSync('docker', ['exec', sandbox, 'sh', '-c', script]);
  },
  evidence: ['disk', 'memory', 'pids'],
});

describe('a docker sandbox, seen from the daemon', () => {
  const stack = `daemon-${process.pid}`;
  const docker = new Docker();
  const provider = createDockerProvider({ stack });
  const { signal } = new AbortController();
  const made = new Set<string>();
  const make = (name: string, changes: Partial<SandboxSpec> = {}, by = provider) => {
    made.add(`${stack}-${name}`);
    return by.ensure(agentSpec(stack, `${stack}-${name}`, changes), signal);
  };
  after(async () => {
    for (const name of made) await provider.remove(name);
  });

  it('has no capabilities, no network, no way to gain privileges, and three uids', async () => {
    const sandbox = await make('sealed');
    const { HostConfig, Config } = await docker.getContainer(sandbox.name).inspect();
    assert.deepEqual(HostConfig.CapDrop, ['ALL']);
    assert.deepEqual(HostConfig.SecurityOpt, ['no-new-privileges']);
    assert.deepEqual([HostConfig.NetworkMode, HostConfig.Init, HostConfig.Memory], ['none', true, 256 * 2 ** 20]);
    assert.deepEqual([HostConfig.NanoCpus, HostConfig.MemorySwap, HostConfig.PidsLimit], [1e9, 256 * 2 ** 20, 128]);
    const uidOf = async (account: 'agent' | 'grader') =>
      String(
        (await sandbox.exec({ ...foreground, account, argv: sh('id -u; grep CapEff /proc/self/status') }, signal))
          .stdout,
      );
    const [agent, grader] = [await uidOf('agent'), await uidOf('grader')];
    assert.match(agent, /^[12]\d{5}\nCapEff:\s0+\n$/);
    assert.match(grader, /^0\nCapEff:\s0+\n$/);
    assert.notEqual(Config.User?.split(':')[0], '0');
    assert.notEqual(Config.User?.split(':')[0], agent.split('\n')[0]);
  });

  it('reaches its own processes by the name localhost, and knows the names of its task', async () => {
    const hosts = [{ name: 'api.internal', address: '127.0.0.9' }];
    const sandbox = await make('named', { hosts });
    const connect = [
      'import socket',
      "server = socket.create_server(('127.0.0.1', 8099))",
      "socket.create_connection(('localhost', 8099)).sendall(b'hello')",
      'print(server.accept()[0].recv(9).decode())',
    ].join('\n');
    const look = `awk '/localhost$/ || /api/ { print $1, $2 }' /etc/hosts; getent hosts api.internal | cut -d' ' -f1`;
    const argv = sh(`${look}; ls /sys/class/net; python3 -c "${connect}"`);
    const { stdout, stderr } = await sandbox.exec({ ...foreground, argv }, signal);
    const expected = ['127.0.0.1 localhost', '127.0.0.9 api.internal', '127.0.0.9', 'lo', 'hello', ''];
    assert.equal(String(stdout), expected.join('\n'), String(stderr));
  });

  it('asks the daemon nothing more about a process that left nothing behind, and ends what another left', async () => {
    const counted = new Docker();
    let calls = 0;
    const { modem } = counted;
    const dial = modem.dial.bind(modem);
    modem.dial = (options, callback) => {
      calls += 1;
      return dial(options, callback);
    };
    const asked = createDockerProvider({ stack, docker: counted });
    await make('left');
    const sandbox = await asked.attach(`${stack}-left`);
    assert.ok(sandbox);
    const run = async (key: string, argv: ['sh', '-c', string]) => {
      await sandbox.start({ key, argv, env: {}, account: 'agent' }, signal);
      assert.equal((await sandbox.wait(key, longWait, signal)).state, 'exited');
      // The recorder's stream ends with one more request, which asks for its exit code.
      const before = calls + 1;
      await sandbox.killProcesses('agent');
      const log = await sandbox.readLog(key, { fromByte: 0, maxBytes: 100 });
      return { calls: calls - before, log: String(log.bytes) };
    };
    // On a busy machine a process may take longer to disappear than its recorder waits: then the sandbox was not quiet.
    const most = 20;
    const requests: number[] = [];
    do {
      const quiet = await run(`quiet-${requests.length}`, sh('echo said'));
      assert.equal(quiet.log, 'said\n');
      requests.push(quiet.calls);
    } while (requests.every((count) => count > 0) && requests.length < most);
    assert.ok(Math.min(...requests) <= 0, `made ${requests.join(', ')} more requests`);
    const busy = await run('busy', sh('echo said; setsid sleep 321 >/dev/null 2>&1 &'));
    assert.equal(busy.log, 'said\n');
    const left = await sandbox.exec(
      { ...foreground, argv: sh('cat /proc/[0-9]*/cmdline | grep -c "3[2]1"; true') },
      signal,
    );
    assert.equal(String(left.stdout), '0\n');
  });

  it('makes agent and grader root if the task asks for it, with less than Docker gives root', async () => {
    const sandbox = await make('root', { root: true });
    const { HostConfig } = await docker.getContainer(sandbox.name).inspect();
    assert.deepEqual([HostConfig.CapDrop, HostConfig.SecurityOpt], [['ALL'], ['no-new-privileges']]);
    assert.deepEqual([HostConfig.NetworkMode, HostConfig.Privileged, sandbox.twoUids], ['none', false, false]);
    const asRoot = 'id -u; touch /etc/a && chown daemon /etc/a && stat -c %U /etc/a; echo $HOME';
    for (const account of ['agent', 'grader'] as const) {
      const { stdout } = await sandbox.exec({ ...foreground, account, argv: sh(asRoot) }, signal);
      assert.equal(String(stdout), '0\ndaemon\n/root\n');
    }
    const beyond = 'mknod /tmp/d b 8 0; mount -t tmpfs none /mnt; chroot / unshare -m true; date -s 2001-01-01';
    const { stdout, stderr } = await sandbox.exec({ ...foreground, argv: sh(beyond) }, signal);
    assert.equal(String(stderr).match(/not permitted|denied/gi)?.length, 4, `${stdout} ${stderr}`);
    // Another process finds the same accounts.
    const found = await createDockerProvider({ stack }).attach(sandbox.name);
    assert.equal(String((await found?.exec({ ...foreground, argv: sh('id -u') }, signal))?.stdout), '0\n');
  });

  it('ends what an agent that is root left, under whatever account, and keeps its own records', async () => {
    const sandbox = await make('left-by-root', { root: true });
    // The kernel counts the processes of a uid on the whole machine, and other containers run as 65534.
    const leave =
      'echo said; for u in 0 1 54321; do setsid setpriv --reuid=$u --clear-groups sleep 321 >/dev/null 2>&1 & done';
    await sandbox.start({ key: 'agent', argv: sh(leave), env: {}, account: 'agent' }, signal);
    assert.equal((await sandbox.wait('agent', longWait, signal)).state, 'exited');
    const count = sh('cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -o "sleep 3[2]1" | wc -l');
    await until(async () => String((await sandbox.exec({ ...foreground, argv: count }, signal)).stdout) === '3\n');
    await sandbox.start({ key: 'tests', argv: ['sleep', '600'], env: {}, account: 'grader' }, signal);
    await sandbox.killProcesses('agent');
    assert.equal(String((await sandbox.exec({ ...foreground, argv: count }, signal)).stdout), '0\n');
    assert.equal(String((await sandbox.readLog('agent', { fromByte: 0, maxBytes: 100 })).bytes), 'said\n');
    assert.deepEqual(await sandbox.status('tests'), { state: 'exited', exitCode: 137, signal: 'SIGKILL' });
  });

  it('is not ready with a runtime that the daemon does not know or whose processes the host does not see, and starts sandboxes in one that it knows', async () => {
    const unknown = await createDockerProvider({ stack, runtime: 'no-such-runtime' }).describe();
    assert.equal(unknown.ready, false);
    assert.match(unknown.summary, /knows no runtime no-such-runtime \(TEMPER_RUNTIME\), only .*runc/);
    const hidden = await createDockerProvider({ stack, runtime: 'runsc' }).describe();
    assert.deepEqual([hidden.ready, /can't run in runsc \(TEMPER_RUNTIME\).*crun/.test(hidden.summary)], [false, true]);
    const known = createDockerProvider({ stack, runtime: 'runc' });
    assert.match((await known.describe()).summary, /, runtime runc$/);
    const { name } = await make('runtime', {}, known);
    assert.equal((await docker.getContainer(name).inspect()).HostConfig.Runtime, 'runc');
  });

  it('survives a hostile grader and keeps its log', async () => {
    const sandbox = await make('traitor');
    const argv = sh(
      `echo kept; kill -9 1; kill -TERM 1; mv ${keeperDirectory} /x; rm -rf ${keeperDirectory}/tests; cat ${keeperDirectory}/tests/log; kill -9 -1; exit 3`,
    );
    await sandbox.start({ key: 'tests', argv, env: {}, account: 'grader' }, signal);
    assert.equal((await sandbox.wait('tests', longWait, signal)).state, 'exited');
    assert.match(String((await sandbox.readLog('tests', { fromByte: 0, maxBytes: 100 })).bytes), /^kept\n/);
  });

  it('names a missing image and what to do', async () => {
    const absent = { type: 'MissingImage', message: /no-such-image:1.*pull or build/ };
    await assert.rejects(make('imageless', { image: 'no-such-image:1' }), absent);
    const refusal = await provider.supports({
      task: 'some-task',
      image: 'no-such-image:1',
      paths: [],
      filesInImage: false,
    });
    assert.equal(refusal?.type, 'MissingImage');
    assert.match(refusal?.message ?? '', /some-task/);
  });

  it('reports with evidence that its container was killed from outside, and never starts it again', async () => {
    const sandbox = await make('killed');
    await sandbox.start({ key: 'job', argv: ['sleep', '600'], env: {}, account: 'agent' }, signal);
    const lost = { type: 'SandboxLost', loss: 'killed-outside', message: /kill signal 9/ };
    const waiting = assert.rejects(sandbox.wait('job', longWait, signal), lost);
    await docker.getContainer(sandbox.name).kill();
    await waiting;
    await assert.rejects(sandbox.exec({ ...foreground, argv: ['true'] }, signal), lost);
    await assert.rejects(make('killed'), { type: 'SandboxLost' });
    assert.equal((await provider.list(stack)).find(({ name }) => name === sandbox.name)?.running, false);
  });

  it('is unavailable if the daemon does not answer', async () => {
    const unreachable = createDockerProvider({ stack, docker: new Docker({ socketPath: '/nowhere/docker.sock' }) });
    await assert.rejects(unreachable.list(stack), { type: 'SandboxUnavailable' });
    await assert.rejects(unreachable.attach('some-name'), { type: 'SandboxUnavailable' });
    assert.equal((await unreachable.describe()).ready, false);
  });

  it("gives the image's own workspace to the agent", async () => {
    const builder = await docker.createContainer({
      Image: image,
      Cmd: [
        'sh',
        '-c',
        'mkdir -p /workspace/sub && cd /workspace && git init -q && echo x >sub/f && ln -s sub/f link && chmod 755 sub/f',
      ],
      HostConfig: { NetworkMode: 'none' },
    });
    await builder.start();
    await builder.wait();
    const { Id } = await builder.commit({ repo: `${stack}-image`, tag: 'latest' });
    await builder.remove();
    try {
      for (const name of ['adopted', 'adopted-again']) {
        const sandbox = await make(name, { image: `${stack}-image:latest` });
        await make(name, { image: `${stack}-image:latest` });
        const argv = sh(
          'git status --short && echo y >>sub/f && cat link && stat -c %a sub/f && touch new && rm -rf .git',
        );
        const ran = await sandbox.exec({ ...foreground, argv }, signal);
        assert.equal(String(ran.stdout), '?? link\n?? sub/\nx\ny\n755\n', String(ran.stderr));
        await provider.remove(sandbox.name);
      }
    } finally {
      await docker.getImage(Id).remove({ force: true });
    }
  });
});
