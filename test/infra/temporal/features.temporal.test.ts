import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { connectWorker } from '../../../infra/temporal/connection.ts';
import { readFeatures, requireFeatures } from '../../../infra/temporal/features.ts';
import { cliOn } from '../../helpers/cli.ts';
import '../../helpers/temporal/quiet-runtime.ts';
import { type OwnTestServer, startOwnTestServer, startTestServer } from '../../helpers/temporal/temporal.ts';

const withVersions = { versions: true };

it('a server of the version that temper starts has every feature that it can tell', async () => {
  const server = await startTestServer();
  try {
    await requireFeatures(server.connection, server.namespace, withVersions);
    const { features } = await readFeatures(server.connection, server.namespace, withVersions);
    const states = features.map(({ name, state }) => `${name} ${state}`);
    assert.deepEqual(states, [
      'schedules on',
      'worker versions on',
      'upgrade at continue-as-new on',
      'priority on',
      'fairness unknown',
      'workflow pause on',
    ]);
  } finally {
    await server.close();
  }
});

describe('a server on which worker versions are turned off', () => {
  let server: OwnTestServer;
  let home: string;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-features-'));
    server = await startOwnTestServer({ dynamicConfig: ['system.enableDeploymentVersions=false'] });
  });
  after(async () => {
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  it('is refused by a control worker that is to have one, with what to do, and taken by another', async () => {
    const { connection, close } = await connectWorker(server.target);
    try {
      await requireFeatures(connection, server.namespace, { versions: false });
      await assert.rejects(
        requireFeatures(connection, server.namespace, withVersions),
        /lacks for the namespace default worker versions .*set `system.enableDeploymentVersions` there, or unset TEMPER_DEP/,
      );
    } finally {
      await close();
    }
  });

  it('is what the doctor finds missing', async () => {
    const deployment = { TEMPER_DEPLOYMENT: 'temper', TEMPER_BUILD_ID: 'a' };
    const { stdout } = await cliOn(home, server, deployment).run('doctor', '--json');
    const checks = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ name }) => name === 'server features');
    assert.deepEqual(
      checks.map(({ state }) => state),
      ['ok', 'missing'],
    );
    assert.match(checks[0].found, /Temporal [\d.]+ has schedules, .*the server does not tell about fairness/);
    assert.match(checks[1].found, /worker versions is off/);
  });
});
