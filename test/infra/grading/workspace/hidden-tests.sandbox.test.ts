import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { splitSetupScript } from '../../../../infra/data-sets/formats/slime/setup-script.ts';
import { placeHiddenTests } from '../../../../infra/grading/workspace/hidden-tests.ts';
import { prepareWorkspace } from '../../../../infra/grading/workspace/prepare-workspace.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import { sandboxMaker, workspaceTask } from '../../../helpers/sandbox/workspaces.ts';

const image = `git init -q -b main . && git config user.name t && git config user.email t@t && mkdir test && echo old >test/a && echo base >code &&
  git add -A && git commit -qm base && git tag base && echo fixed >code && echo hidden >test/a && mkdir test/deep && echo hidden >test/deep/b &&
  git add -A && git commit -qm fix && git tag fix`;

it('places hidden tests of a later commit over the diff in an evaluation, and keeps them out of the agent’s sandbox', async () => {
  const root = await mkdtemp(join(tmpdir(), 'temper-hidden-tests-'));
  const { signal } = new AbortController();
  try {
    await using maker = sandboxMaker(createLocalProvider({ root, stack: 'hidden-tests' }), 'hidden-tests', 'none');
    const split = splitSetupScript(
      'git reset -q --hard base\ngit checkout -q base\ngit checkout fix -- test/a test/deep/b',
    );
    assert.ok(!('rejected' in split));
    const { setup, hiddenTests } = split;
    const task = { ...workspaceTask(new Map(), [image, ...setup]), hiddenTests };
    const [agents, evaluations] = [await maker.make(), await maker.make()];
    const said = async (sandbox: typeof agents, command: string): Promise<string> => {
      const limits = {
        account: 'agent',
        cwd: '/workspace',
        env: {},
        timeoutMs: 120_000,
        maxOutputBytes: 65_536,
      } as const;
      const { stdout, stderr } = await sandbox.exec({ ...limits, argv: ['bash', '-c', command] }, signal);
      return `${stdout}${stderr}`;
    };
    const agent = await prepareWorkspace(agents, task, { workdir: '/workspace', keep: true }, signal);
    assert.equal(await said(agents, 'grep -rl hidden . /tmp; git log --all --format=%s; cat test/a'), 'base\nold\n');
    const options = { workdir: '/workspace', keep: false, hiddenTests: true };
    const evaluation = await prepareWorkspace(evaluations, task, options, signal);
    assert.equal(evaluation.baseCommit, agent.baseCommit);
    assert.equal(await said(evaluations, 'git status --short; cat test/a code; grep -rl fixed /tmp'), 'old\nbase\n');
    // A diff may have put these files in place of the tests.
    await said(evaluations, 'mkdir elsewhere; rm test/a; mkdir test/a; ln -s ../elsewhere test/deep');
    await placeHiddenTests(evaluations, task, '/workspace', signal);
    assert.equal(
      await said(evaluations, 'cat test/a test/deep/b code; ls elsewhere /tmp'),
      'hidden\nhidden\nbase\n/tmp:\n\nelsewhere:\n',
    );
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
