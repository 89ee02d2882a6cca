import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type Docker from 'dockerode';
import type { DroppedLimits } from '../../../../infra/sandbox/docker/dropped-limits.ts';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import type { Sandbox, SandboxSpec } from '../../../../infra/sandbox/sandbox.ts';
import { createServiceSandboxes, service, url } from '../../../helpers/sandbox/services.ts';
import { until } from '../../../helpers/until.ts';
import { foreground, sh } from '../contract.ts';

const stack = `services-${process.pid}`;
const fixture = join(import.meta.dirname, 'ensure.fixture.ts');

/** Keeps values by key: `GET /key`, and `PUT /key` with the value. */
const store = `import http.server, json, os, sys
values = {}
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, code, body=b''):
        self.send_response(code); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_GET(self):
        self.answer(200, values[self.path]) if self.path in values else self.answer(404)
    def do_PUT(self):
        values[self.path] = self.rfile.read(int(self.headers['Content-Length'])); self.answer(200)
    def log_message(self, *args): pass
print('keeps', os.environ['KEEPS'], flush=True)
http.server.HTTPServer(('0.0.0.0', 8080), Handler).serve_forever()
`;
const file = (text: string) => ({ mode: 0o644, bytes: Buffer.from(text) });
const kept = service('store', {
  aliases: ['cache'],
  command: ['python3', '/srv/own/store.py'],
  env: { KEEPS: 'values' },
  files: [{ tree: new Map([['store.py', file(store)]]), at: '/srv/own' }],
  healthCheck: {
    test: ['CMD-SHELL', 'python3 -c \'import socket; socket.create_connection(("store", 8080))\''],
    intervalMs: 200,
    retries: 50,
  },
  volumes: [{ name: 'shared', target: '/shared', readOnly: false }],
});
const web = service('web', {
  command: ['sh', '-c', 'echo seen >/shared/web; exec python3 -m http.server 80 --directory /shared'],
  dependsOn: [{ service: 'store', until: 'healthy' }],
  volumes: [{ name: 'shared', target: '/shared', readOnly: false }],
  init: true,
  dropped: ['CHOWN', 'KILL'],
  ulimits: [{ name: 'nofile', soft: 100, hard: 200 }],
});

describe('services beside a docker sandbox', () => {
  const sandboxes = createServiceSandboxes(stack);
  const { docker, provider, specOf, own } = sandboxes;
  const { signal } = new AbortController();
  const ran = async (sandbox: Sandbox, command: string) => {
    const { exitCode, stdout, stderr } = await sandbox.exec(
      { ...foreground, account: 'agent', argv: sh(command) },
      signal,
    );
    return { exitCode, said: String(stdout) + String(stderr) };
  };
  /** A server of the host on all of its addresses. */
  let server: Server;
  let port: number;
  before(async () => {
    server = createServer((_, response) => void response.end('host'));
    await new Promise<void>((resolve) => void server.listen(0, resolve));
    ({ port } = server.address() as AddressInfo);
  });
  after(async () => {
    await new Promise((resolve) => void server.close(resolve));
    await sandboxes.close();
  });

  it('are reached by their names from the sandbox, and from each other, when it is there', async () => {
    const sandbox = await provider.ensure(specOf('named', [kept, web]), signal);
    const put = `python3 -c 'import urllib.request as r; r.urlopen(r.Request("http://store:8080/a", data=b"1", method="PUT"))'`;
    assert.deepEqual(await ran(sandbox, `${put} && ${url('http://cache:8080/a')} && ${url('http://web/web')}`), {
      exitCode: 0,
      said: '200\n200\n',
    });
    assert.deepEqual(await ran(sandbox, 'cat /seen/web; touch /seen/other 2>/dev/null || echo read-only'), {
      exitCode: 0,
      said: 'seen\nread-only\n',
    });
    const { HostConfig } = await docker.getContainer(`${sandbox.name}.store`).inspect();
    assert.deepEqual(
      [HostConfig.CapDrop, HostConfig.SecurityOpt, HostConfig.Memory],
      [['ALL'], ['no-new-privileges'], 128 * 2 ** 20],
    );
  });

  it('reach neither the host nor anything outside, and are not reached from the host', async () => {
    const sandbox = await provider.ensure(specOf('named', [kept, web]), signal);
    const addresses = Object.values(networkInterfaces()).flatMap((list) =>
      (list ?? []).filter(({ family }) => family === 'IPv4').map(({ address }) => address),
    );
    assert.equal(await fetch(`http://${addresses[0]}:${port}`).then((answer) => answer.text()), 'host');
    const tried = [...addresses, '1.1.1.1', '169.254.169.254'];
    const connect = `import socket, sys
for address in sys.argv[1:]:
    s = socket.socket(); s.settimeout(2)
    print(s.connect_ex((address, ${port})))
try: print(socket.gethostbyname("example.com"))
except OSError: print("no name")
print(open("/proc/net/dev").read().count(":"))`;
    const exec = await docker
      .getContainer(`${sandbox.name}.web`)
      .exec({ Cmd: ['python3', '-c', connect, ...tried], AttachStdout: true, AttachStderr: true, Tty: true });
    const stream = await exec.start({ Tty: true });
    let said = '';
    for await (const chunk of stream) said += String(chunk);
    const [name, ...others] = said.trim().split(/\r?\n/).slice(tried.length);
    const codes = said.trim().split(/\r?\n/).slice(0, tried.length);
    assert.ok(
      codes.every((code) => code !== '0'),
      said,
    );
    assert.deepEqual([name, others], ['no name', ['1']], said);
    for (const reached of [8080, 80]) {
      await assert.rejects(
        fetch(`http://127.0.0.1:${reached}/web`),
        `port ${reached} of a service answers on the host`,
      );
    }
  });

  it('have the first process, the capabilities and the limits that they ask for', async () => {
    const sandbox = await provider.ensure(specOf('named', [kept, web]), signal);
    // The limits are read of the first process: of one that is started beside it, runc sometimes raises the soft limit
    // to the hard one, because the Go runtime of its own helper does so at its start.
    const look = `grep files /proc/1/limits | tr -s ' ' | cut -d' ' -f4,5
touch /tmp/a && chown 1 /tmp/a || echo kept; readlink /proc/1/exe`;
    const exec = await docker.getContainer(`${sandbox.name}.web`).exec({
      Cmd: ['sh', '-c', look],
      AttachStdout: true,
      AttachStderr: true,
      Tty: true,
    });
    const stream = await exec.start({ Tty: true });
    let said = '';
    for await (const chunk of stream) said += String(chunk);
    assert.match(said, /^100 200\r\nchown: .*not permitted\r\nkept\r\n\S*init\r\n$/);
  });

  it('keep the limits of the daemon, where it may not set those that they or the sandbox ask for', async () => {
    const ulimits = [{ name: 'nofile', soft: -1, hard: -1 }] as const;
    const spec = { ...specOf('unlimited', [service('idle', { command: ['sleep', '1000'], ulimits })]), ulimits };
    const dropped: DroppedLimits[] = [];
    const telling = createDockerProvider({ stack, onDroppedLimits: (limits) => void dropped.push(limits) });
    const sandbox = await telling.ensure(spec, signal);
    assert.deepEqual(dropped, [
      { sandbox: spec.name, service: null, ulimits },
      { sandbox: spec.name, service: 'idle', ulimits },
    ]);
    assert.equal((await ran(sandbox, 'ulimit -n')).exitCode, 0);
    const { HostConfig, State } = await docker.getContainer(`${sandbox.name}.idle`).inspect();
    assert.deepEqual([HostConfig.Ulimits ?? [], State.Running], [[], true]);
    const again = await createDockerProvider({ stack }).ensure(spec, signal);
    assert.equal((await ran(again, 'true')).exitCode, 0);
  });

  it('are the same after another process asks for the sandbox, and go with it', async () => {
    const spec = specOf('again', [kept, web]);
    await provider.ensure(spec, signal);
    const idOf = async () => (await docker.getContainer(`${spec.name}.store`).inspect()).Id;
    const first = await idOf();
    const other = createDockerProvider({ stack });
    const sandbox = await other.ensure(spec, signal);
    assert.equal(await idOf(), first);
    assert.equal((await ran(sandbox, url('http://web/web'))).exitCode, 0);
    assert.deepEqual(
      (await other.list(stack)).map(({ name }) => name).filter((name) => name.includes('again')),
      [spec.name],
    );
    assert.equal(await other.remove(spec.name), true);
    assert.deepEqual(
      (await own()).filter((name) => name?.includes('again')),
      [],
    );
    assert.equal(await other.remove(spec.name), false);
  });

  it('are found by a reaper even if their sandbox is gone', async () => {
    const spec = specOf('orphans', [kept, web]);
    await provider.ensure(spec, signal);
    await docker.getContainer(spec.name).remove({ force: true });
    const [left] = (await provider.list(stack)).filter(({ name }) => name === spec.name);
    assert.deepEqual([left?.name, left?.labels.rollout, left?.running], [spec.name, 'orphans', false]);
    assert.equal(await provider.remove(spec.name), true);
    assert.deepEqual(
      (await own()).filter((name) => name?.includes('orphans')),
      [],
    );
  });

  it('are completed or removed by another process if the first is killed while it makes them', async () => {
    const slow = service('slow', {
      command: ['sh', '-c', 'while [ ! -e /go ]; do sleep 0.05; done; exec sleep 1000'],
      healthCheck: { test: ['CMD', 'test', '-e', '/go'], intervalMs: 100, retries: 1000 },
      volumes: [{ name: 'shared', target: '/shared', readOnly: false }],
    });
    const last = service('last', { command: ['sleep', '1000'], dependsOn: [{ service: 'slow', until: 'healthy' }] });
    const killed = async (name: string): Promise<SandboxSpec> => {
      const spec = specOf(name, [slow, last]);
      const maker = spawn(process.execPath, [fixture, JSON.stringify(spec)], { stdio: 'inherit' });
      const runs = (info: Docker.ContainerInspectInfo | undefined): boolean => info?.State.Status === 'running';
      const isMade = () =>
        docker
          .getContainer(`${spec.name}.slow`)
          .inspect()
          .catch(() => undefined);
      await until(async () => runs(await isMade()));
      const ended = once(maker, 'exit');
      maker.kill('SIGKILL');
      assert.deepEqual(await ended, [null, 'SIGKILL']);
      return spec;
    };
    const [completed, removed] = await Promise.all([killed('completed'), killed('removed')]);
    const go = await docker.getContainer(`${completed.name}.slow`).exec({ Cmd: ['touch', '/go'] });
    await go.start({});
    const sandbox = await provider.ensure(completed, signal);
    assert.equal((await docker.getContainer(`${sandbox.name}.last`).inspect()).State.Running, true);
    assert.equal(await provider.remove(removed.name), true);
    assert.deepEqual(
      (await own()).filter((name) => name?.includes('removed')),
      [],
    );
  });
});
