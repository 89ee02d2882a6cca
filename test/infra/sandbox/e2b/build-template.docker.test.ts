import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { buildTemplate } from '../../../../infra/sandbox/e2b/build-template.ts';
import { createE2bProvider } from '../../../../infra/sandbox/e2b/provider.ts';
import { templateNameOf } from '../../../../infra/sandbox/e2b/templates.ts';
import type { SandboxSpec } from '../../../../infra/sandbox/sandbox.ts';
import { startE2bServer } from '../../../helpers/e2b/server.ts';
import { e2bSettings } from '../../../helpers/e2b/settings.ts';
import { foreground } from '../contract.ts';

const image = 'temper-tasks:bookworm';
const server = await startE2bServer({ templates: {} });
const home = mkdtempSync(join(tmpdir(), 'e2b-home-'));
const settings = e2bSettings(server, home);
const stack = `template-${process.pid}`;
const provider = createE2bProvider({ stack, ...settings });
/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(300_000);
const programs = join(home, 'programs');
mkdirSync(join(programs, 'tool-1'), { recursive: true });
writeFileSync(join(programs, 'tool-1/say'), '#!/bin/sh\necho here\n', { mode: 0o755 });
const build = (name: string, from: string) =>
  buildTemplate(settings, { name, image: from, programs, cpus: 1, memoryMb: 512 }, () => undefined, limit());

after(async () => {
  await provider.close();
  await server.close();
  rmSync(home, { recursive: true });
});

describe('a template that a server builds', () => {
  it('is the one that a sandbox of the image finds, with the programs in it', async () => {
    await build(templateNameOf(image), image);
    const asked: SandboxSpec = {
      name: `${stack}-one`,
      image,
      labels: { stack, run: 'run', rollout: 'one', epoch: 1, purpose: 'agent', expiresAtMs: Date.now() + 600_000 },
      cpus: 1,
      memoryMb: 512,
      diskMb: 64,
      pids: 64,
      workdir: '/workspace',
      mounts: [{ source: programs, target: '/tool', readOnly: true, program: { name: 'tool', version: '1' } }],
    };
    const sandbox = await provider.ensure(asked, limit());
    const { stdout } = await sandbox.exec({ ...foreground, argv: ['/tool/say'] }, limit());
    assert.equal(String(stdout), 'here\n');
  });

  it('says why it could not be built', async () => {
    const refusal = { type: 'ImageUnavailable', message: /template lacks from lacks:1/, evidence: /lacks:1 not found/ };
    await assert.rejects(build('lacks', 'lacks:1'), refusal);
  });

  it('needs the right key', async () => {
    const wrong = { ...settings, apiKey: async () => 'e2b_wrong' };
    const template = { name: 'any', image, programs, cpus: 1, memoryMb: 512 };
    const refused = buildTemplate(wrong, template, () => undefined, limit());
    await assert.rejects(refused, { type: 'SandboxUnavailable', message: /refused the API key \(401\)/ });
  });
});
