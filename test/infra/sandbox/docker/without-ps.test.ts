import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import Docker from 'dockerode';
import { callDaemon } from '../../../../infra/sandbox/docker/daemon.ts';
import { describeDocker } from '../../../../infra/sandbox/docker/describe.ts';
import { defaultDockerSettings } from '../../../../infra/sandbox/docker/settings.ts';

/** The answer of Docker 20.10 on a Debian 12 without procps. */
const noPs = 'ps: exec: "ps": executable file not found in $PATH';

async function startDaemon(t: TestContext, answer: RequestListener): Promise<Docker> {
  const directory = await mkdtemp(join(tmpdir(), 'without-ps-'));
  t.after(() => rm(directory, { recursive: true }));
  const socketPath = join(directory, 'docker.sock');
  const daemon = createServer(answer);
  await new Promise<void>((resolve) => daemon.listen(socketPath, resolve));
  t.after(() => daemon.close());
  return new Docker({ socketPath });
}

it('a daemon whose host has no ps is refused before the start, with the package to install', async (t) => {
  const docker = await startDaemon(t, (_, response) => response.end(JSON.stringify({ Version: '20.10.24' })));
  const quota = async () => ({ enforced: false, root: '/var/lib/docker', driver: 'overlay2' });
  const describe = (...directories: string[]) => describeDocker(docker, defaultDockerSettings, quota, directories);
  const { ready, mayComeUp, summary } = await describe('/nowhere');
  assert.deepEqual([ready, mayComeUp], [false, undefined]);
  assert.match(summary, /`ps`, which its host lacks; install it there \(Debian: procps\)/);
  assert.equal((await describe('/usr/bin', '/bin')).ready, true);
});

it('a daemon on another machine without ps is at fault, and not the rollout', async (t) => {
  const docker = await startDaemon(t, (_, response) => {
    response.writeHead(500, { 'Content-Type': 'application/json' }).end(JSON.stringify({ message: noPs }));
  });
  await assert.rejects(
    callDaemon(() => docker.getContainer('sandbox').top()),
    { type: 'SandboxUnavailable', message: /install it there \(Debian: procps\)/ },
  );
});
