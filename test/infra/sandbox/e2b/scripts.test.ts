import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { begin, keepEnvironment, keepHooks, variablesOf } from '../../../../infra/sandbox/e2b/scripts.ts';
import { byImage, startVariables } from '../../../../infra/sandbox/image-environment.ts';
import { imageVariables } from '../../../../infra/sandbox/shell/own-programs.ts';

it("gives the template's variables to commands that enter the image's environment, and to no script of temper's", (t) => {
  const root = mkdtempSync(join(tmpdir(), 'temper-e2b-'));
  t.after(() => rmSync(root, { recursive: true }));
  const at = (text: string): string => text.replaceAll('/.temper', join(root, 'keeper'));
  const hooks = { LD_LIBRARY_PATH: '/opt/some lib', BASH_ENV: '/opt/rc', ENV: '/opt/rc', LOGNAME: 'template' };
  const given = { PATH: '/usr/bin:/bin', HOME: '/root', USER: 'root', OTHER: 'a', ...hooks };
  const run = (text: string, env: Readonly<Record<string, string>>, args: readonly string[] = []): string => {
    const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', at(text), 'temper', ...args], { env });
    assert.equal(status, 0, String(stderr));
    return String(stdout);
  };
  run(keepHooks, given);
  const all = `agent=120001 places=/workspace\n${keepEnvironment}\necho "PATH HOME USER LOGNAME OTHER" >/.temper/names`;
  run(`${begin}${all}`, { ...given, ...variablesOf({}) });
  const own = run(`${begin}env`, { ...given, ...variablesOf({}) });
  assert.doesNotMatch(own, /^(?:LD_LIBRARY_PATH|BASH_ENV|ENV|LOGNAME|USER|OTHER)=/m);
  const { argv, entersImage } = byImage(['env']);
  const variables = variablesOf(startVariables({}, { entersImage }, at(imageVariables)));
  const entered = run(`${begin}exec "$@"`, { ...given, ...variables }, argv);
  for (const [name, value] of Object.entries(hooks))
    assert.ok(entered.split('\n').includes(`${name}=${value}`), entered);
  assert.doesNotMatch(entered, /^USER=/m);
});
