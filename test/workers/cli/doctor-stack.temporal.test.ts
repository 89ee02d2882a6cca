import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Config, readConfig } from '../../../infra/settings/config.ts';
import { checkSandboxes } from '../../../workers/cli/commands/doctor/sandboxes.ts';
import { checkStack } from '../../../workers/cli/commands/doctor/stack.ts';
import { runningConfigOf } from '../../../workers/cli/stack/command.ts';
import type { PartName } from '../../../workers/up/part.ts';
import { createUpFileWriter } from '../../../workers/up/up-file.ts';
import { startTestServer, type TestServer } from '../../helpers/temporal/temporal.ts';

const options = { register: false, model: undefined } as const;

describe('the doctor of a running stack', () => {
  let server: TestServer;
  let home = '';
  let config: Config;
  before(async () => {
    server = await startTestServer();
    home = await mkdtemp(join(tmpdir(), 'temper-doctor-'));
    const { address, namespace } = server.target;
    const ofServer = { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
    config = readConfig({ TEMPER_HOME: home, TEMPER_HOST: 'box-1', ...ofServer });
  });
  after(async () => {
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  /** The names of the checks of a stack that consists of these parts, supervised by this process. */
  async function checksOf(...names: readonly PartName[]): Promise<readonly string[]> {
    await runs(...names);
    const checks: string[] = [];
    for await (const { name } of checkStack(config, options)) checks.push(name);
    return checks;
  }

  async function runs(...names: readonly PartName[]): Promise<void> {
    const part = { state: 'running', pid: null, restarts: 0, lastExit: null, logFile: 'log' } as const;
    const { address: temporal, namespace } = server.target;
    const writer = createUpFileWriter({
      config,
      addresses: { temporal, namespace, ui: null, policy: null, gatewayControl: '' },
      state: () => 'running',
      parts: () => names.map((name) => ({ ...part, name })),
    });
    writer.changed();
    await writer.written();
  }

  it('looks for a host worker and a gateway only on a machine that has a host', async () => {
    const common = ['stack', 'control worker', 'trainer worker', 'engine'];
    assert.deepEqual((await checksOf('policy', 'control', 'trainer')).toSorted(), common.toSorted());
    const hosted = [...common, 'host worker', 'gateway'];
    assert.deepEqual((await checksOf('gateway-1', 'control', 'host')).toSorted(), hosted.toSorted());
  });

  it('knows the name that the host was started with', async () => {
    await runs('gateway', 'host');
    assert.equal((await runningConfigOf({ home })).host, 'box-1');
  });

  it('asks for a kind of sandbox only on a machine that has a host', async () => {
    const lacking = { ...config, sandbox: 'e2b' } as const;
    const statesOf = async (): Promise<readonly string[]> => {
      const states: string[] = [];
      for await (const { state } of checkSandboxes(lacking, options)) states.push(state);
      return states;
    };
    await runs('control', 'trainer');
    assert.deepEqual(await statesOf(), ['ok']);
    await runs('gateway', 'host');
    assert.ok((await statesOf()).includes('missing'));
  });
});
