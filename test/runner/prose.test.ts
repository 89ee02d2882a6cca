import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkProse } from './prose.ts';

const problems = (source: string, path = 'a.ts'): string[] => checkProse(path, source).map(({ problem }) => problem);

describe('the check of the prose', () => {
  it('finds a banned phrase as whole words, in any case, in code and in pages', () => {
    assert.equal(problems('// A set that is none is wrong usage.').length, 1);
    assert.equal(problems('The run Goes on.', 'a.md').length, 1);
    assert.deepEqual(problems('const goesOnward = 1; // there is none; amended'), []);
  });

  it('finds a docstring that leaves its subject to the identifier below', () => {
    for (const text of ['/** Of a sweep. */', '/**\n * What a file may import.\n */', '  /** How long it waits. */']) {
      assert.equal(problems(text).length, 1, text);
    }
    for (const text of [
      '/** Releases the slot. */',
      '/** Whether it waits. */',
      "/** This host's sandboxes. */",
      '// Of it.',
    ]) {
      assert.deepEqual(problems(text), [], text);
    }
  });

  it('names the line, and skips a line that is excepted with a reason', () => {
    assert.deepEqual(
      checkProse('a.md', 'fine\n\nthe run goes on\n').map(({ line }) => line),
      [3],
    );
    assert.deepEqual(problems("const text = 'talk'; // prose-ok: the name of a repository"), []);
    assert.deepEqual(problems('<!-- prose-ok: an example of the rules -->\n"goes on"', 'a.md'), []);
    assert.equal(problems("const text = 'talk'; // prose-ok:").length, 1);
  });
});
