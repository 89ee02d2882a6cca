import assert from 'node:assert/strict';
import { it } from 'node:test';
import { loadProblem } from '../../infra/load-module.ts';

it('a module that imports what a checkout has not built yet names the command that builds it', () => {
  const unbuilt = new Error("Cannot find module '/home/me/temper/dist/infra/exported/task-source.js'");
  assert.match(loadProblem(unbuilt), /task-source\.js'\); in a checkout of temper, run `npm run build` first$/);
  assert.equal(loadProblem(new Error('Unexpected token')), 'it cannot be loaded (Unexpected token)');
});
