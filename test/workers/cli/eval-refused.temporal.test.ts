import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import { processIdentity } from '../../../infra/process/process-identity.mjs';
import type { UpFile } from '../../../workers/up/up-file.ts';
import { cliOn } from '../../helpers/cli.ts';
import { type ScriptedStack, startScriptedStack } from '../../helpers/temporal/scripted-stack.ts';

describe('temper eval where the sandboxes fail', () => {
  let stack: ScriptedStack;
  before(async () => {
    stack = await startScriptedStack();
  });
  after(async () => {
    await stack?.close();
  });

  it('exits with 1 if every attempt ended as infra', async () => {
    const lost = async (): Promise<never> => {
      throw ApplicationFailure.nonRetryable('the daemon is gone', 'SandboxUnavailable');
    };
    stack.script = { reward: () => 1, agent: lost };
    const args = '--tasks generated:test/1 --count 1 --infra-retries 0 --id lost'.split(' ');
    const { code, stdout, stderr } = await cliOn(stack.home, stack.server).run('eval', ...args);
    assert.equal(code, 1, `${stdout}\n${stderr}`);
    assert.match(stderr, /no attempt counted: they ended as infra/);
    assert.match(stdout, /^counted +0 of 1 attempts; left out: infra 1$/m);
  });

  it('starts no sweep if the Docker of this machine does not answer', async () => {
    await writeFile(join(stack.home, 'up.json'), JSON.stringify(upFileOf(stack)));
    const temper = cliOn(stack.home, stack.server, { DOCKER_HOST: `unix://${join(stack.home, 'no-docker.sock')}` });
    const args = '--tasks generated:test/1 --count 1 --sandbox docker --id no-docker'.split(' ');
    const { code, stderr } = await temper.run('eval', ...args);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /docker sandboxes are not ready on this host: .*; install and start Docker Engine/);
    await assert.rejects(stack.server.client.workflow.getHandle('no-docker').describe());
  });
});

/** Describes a stack that runs, as this process does, with a host on this machine. */
function upFileOf({ server }: ScriptedStack): UpFile {
  const { address: temporal, namespace } = server;
  const host = { name: 'host', state: 'running', process: null, restarts: 0, lastExit: null, logFile: '' } as const;
  return {
    supervisor: { pid: process.pid, startedAt: processIdentity(process.pid).startedAt ?? '' },
    state: 'running',
    addresses: { temporal, namespace, ui: null, policy: null, gatewayControl: '' },
    ports: { temporal: 7233, ui: 8233, policy: 8900 },
    store: {},
    modules: { TEMPER_AGENTS: '', TEMPER_TOOLS: '', TEMPER_REWARDS: '' },
    network: 'none',
    host: 'scripted',
    parts: [host],
  };
}
