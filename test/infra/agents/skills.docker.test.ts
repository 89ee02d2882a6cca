import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { placeSkills, requireSkills } from '../../../infra/agents/skills.ts';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import { agentSpec } from '../../helpers/sandbox/agent-spec.ts';
import { failure } from '../../helpers/tasks/data-set-fixture.ts';
import { foreground, sh } from '../sandbox/contract.ts';

describe('the skills of a task', () => {
  const stack = `skills-${process.pid}`;
  const provider = createDockerProvider({ stack });
  const { signal } = new AbortController();
  const names = [`${stack}-plain`, `${stack}-root`] as const;
  after(async () => {
    for (const name of names) await provider.remove(name);
  });

  const make = (name: string, root: boolean) => provider.ensure(agentSpec(stack, name, root ? { root } : {}), signal);

  it('are where the agent reads them, in the home of its account', async () => {
    for (const [index, name] of names.entries()) {
      const sandbox = await make(name, index === 1);
      const skills = { task: 'a', skillsDirectory: '/skills' };
      await assert.rejects(
        placeSkills(sandbox, { skills: '.agents/skills' }, skills, signal),
        failure('SetupFailed', /skills_dir: expected the directory \/skills in the image, got none/),
      );
      const tree = new Map([['greet/SKILL.md', { mode: 0o644, bytes: Buffer.from('# Greet\n') }]]);
      await sandbox.putFiles({ tree, at: '/skills', owner: 'grader' }, signal);
      await placeSkills(sandbox, { skills: '.agents/skills' }, skills, signal);
      const argv = sh('cat "$HOME/.agents/skills/greet/SKILL.md"; echo $HOME');
      const { stdout } = await sandbox.exec({ ...foreground, argv }, signal);
      assert.equal(String(stdout), `# Greet\n${index === 1 ? '/root' : '/home/agent'}\n`);
    }
  });

  it('are refused for an agent that calls the model and reads none', () => {
    const reads = { name: 'a', usesModel: true, skills: '.agents/skills' };
    const readsNone = { name: 'mini', usesModel: true };
    const skills = { task: 't', skillsDirectory: '/skills' };
    for (const spec of [reads, { ...readsNone, usesModel: false }]) requireSkills(spec, skills);
    requireSkills(readsNone, { ...skills, skillsDirectory: null });
    assert.throws(
      () => requireSkills(readsNone, skills),
      failure('UnsupportedTask', /task t has skills \(environment\.skills_dir\), which agent mini does not read/),
    );
  });
});
