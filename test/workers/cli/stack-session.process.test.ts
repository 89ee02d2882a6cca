import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readConfig } from '../../../infra/settings/config.ts';
import { requireSandboxes } from '../../../workers/cli/stack/require-sandboxes.ts';
import { type StackSession, startSession } from '../../../workers/cli/stack/stack-session.ts';
import { withFreePorts } from '../../../workers/up/ports.ts';
import { readUpFile } from '../../../workers/up/up-file.ts';
import { until } from '../../helpers/until.ts';

describe('the stack of one command', () => {
  let home = '';
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-session-'));
  });
  after(() => rm(home, { recursive: true, force: true }));

  it('takes other ports if another stack takes its own while it starts', async () => {
    const env = { ...process.env, TEMPER_LOG_LEVEL: 'error' };
    const ports = await withFreePorts(readConfig({ ...env, TEMPER_HOME: home }));
    const start = async (name: string) =>
      startSession(readConfig({ ...ports.env, TEMPER_HOME: join(home, name) }), new AbortController().signal);
    const one = start('one');
    // Its ports are still free when the other looks at them, and taken when the other listens.
    await until(async () => (await readUpFile(join(home, 'one/up.json'))) !== null);
    const started = await Promise.allSettled([one, start('other')]);
    const sessions = started.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
    try {
      assert.deepEqual(
        started.filter(({ status }) => status === 'rejected'),
        [],
      );
      assert.equal(new Set(sessions.map(({ own }) => own?.addresses.temporal)).size, 2);
      const [session] = sessions;
      assert.ok(session !== undefined);
      await refusesDocker(session);
    } finally {
      await Promise.all(sessions.map((session) => session.close()));
    }
  });

  /** Checks that Docker is refused as the doctor does it, before a rollout is tried for minutes. */
  async function refusesDocker(session: StackSession): Promise<void> {
    const earlier = process.env.DOCKER_HOST;
    process.env.DOCKER_HOST = `unix://${join(home, 'no-docker.sock')}`;
    try {
      await assert.rejects(
        requireSandboxes({ choice: 'docker' }, session, new AbortController().signal),
        /^Error: docker sandboxes are not ready on this host: .*no connection.*; install and start Docker Engine/,
      );
      await requireSandboxes({ choice: 'local' }, session, new AbortController().signal);
    } finally {
      if (earlier === undefined) delete process.env.DOCKER_HOST;
      else process.env.DOCKER_HOST = earlier;
    }
  }
});
