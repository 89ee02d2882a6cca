import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'smol-toml';
import { filterPatch } from '../../../../infra/grading/protection/filter-patch.ts';
import { escapePattern, matcher } from '../../../../infra/grading/protection/patterns.ts';
import { protectedPatterns } from '../../../../infra/grading/protection/rules.ts';
import { sectionedFiles } from '../../../../infra/grading/protection/sections.ts';
import { userSeconds } from '../../../helpers/user-seconds.ts';

describe('patterns of paths', () => {
  const cases: readonly {
    readonly pattern: string;
    readonly matches: readonly string[];
    readonly others: readonly string[];
  }[] = [
    {
      pattern: 'conftest.py',
      matches: ['conftest.py', 'a/b/conftest.py', 'conftest.py/x'],
      others: ['my_conftest.py', 'conftest.pyc', 'a/conftest_py'],
    },
    { pattern: 'tests/', matches: ['tests/a', 'x/tests/deep/a'], others: ['tests', 'mytests/a', 'tests.py'] },
    { pattern: '/test/', matches: ['test/a'], others: ['django/test/client.py'] },
    {
      pattern: '**/site-packages/*.pth',
      matches: ['venv/lib/site-packages/x.pth', 'site-packages/x.pth'],
      others: ['model.pth', 'site-packages/a/x.pth'],
    },
    {
      pattern: 'jest.config.*',
      matches: ['jest.config.js', 'p/jest.config.mjs'],
      others: ['jest.config', 'xjest.config.js'],
    },
    {
      pattern: '.config/nextest.toml',
      matches: ['.config/nextest.toml'],
      others: ['nextest.toml', 'x/.config/nextest.toml'],
    },
    { pattern: '/a?/**/z', matches: ['ab/z', 'ab/c/d/z'], others: ['a/z', 'x/ab/z'] },
    {
      pattern: '**/a/**/b*/c/**/*.d',
      matches: ['a/b/c/x.d', 'x/a/a/b/b1/c/c/y/x.d/z', 'a/b/x/b/c/x.d'],
      others: ['a/b/x/c/x.d', 'b/c/a/x.d', 'a/b/c/d'],
    },
    { pattern: escapePattern('t/[x]*?\\.py'), matches: ['t/[x]*?\\.py'], others: ['t/x.py', 't/[x]abc.py'] },
    { pattern: 'ä', matches: ['\xc3\xa4'], others: ['\xe4'] },
  ];
  for (const { pattern, matches, others } of cases) {
    it(`${pattern} matches as in a .gitignore`, () => {
      assert.deepEqual(matches.filter(matcher([pattern])), matches);
      assert.deepEqual(others.filter(matcher([pattern])), []);
    });
  }
});

it('takes no time for deep paths, of which an agent may make thousands', () => {
  const isProtected = matcher(protectedPatterns({ testsInRepository: true, paths: [] }));
  const seconds = userSeconds(() => {
    for (let count = 0; count < 1_000; count += 1)
      assert.equal(isProtected(`Test/${'test/'.repeat(800)}${count}`), false);
  });
  assert.ok(seconds < 20, `expected time that grows with the length of the path, got ${seconds} s`);
});

it('lets the last of several patterns decide, and revokes earlier ones by a !', () => {
  const asked = matcher(['tests/', '!tests/data/', '/tests/data/gold.txt', '\\!odd', '!/pkg.egg-info/']);
  const paths = ['tests/a.py', 'tests/data/x', 'tests/data/gold.txt', '!odd', 'pkg.egg-info/PKG-INFO'];
  assert.deepEqual(paths.filter(asked), ['tests/a.py', 'tests/data/gold.txt', '!odd']);
  const opened = matcher(protectedPatterns({ testsInRepository: true, paths: ['!/pkg.egg-info/', '!conftest.py'] }));
  assert.deepEqual(['pkg.egg-info/PKG-INFO', 'x.egg-info/a', 'conftest.py', 'tests/a.py'].filter(opened), [
    'x.egg-info/a',
    'tests/a.py',
  ]);
});

const part = (name: string, how: string): string => `diff --git a/${name} b/${name}\n${how}`;
const added = 'new file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n';
const deleted = 'deleted file mode 100644\nindex 1..0\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n';
const changed = 'index 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n';

describe('a patch without changes to protected files', () => {
  const inRepository = protectedPatterns({ testsInRepository: true, paths: ['/golden.txt'] });
  const left = (parts: readonly string[], patterns = inRepository) => {
    const { patch, restored, sectioned } = filterPatch(Buffer.from(parts.join(''), 'latin1'), patterns, {
      mergeSections: true,
    });
    const names = [...String(patch).matchAll(/^diff --git a\/(.*) b\//gm)].map(([, name]) => name);
    return { names, restored, sectioned };
  };

  it('has neither tests nor their configuration if the repository contains the tests', () => {
    const own = ['src/a.py', 'src/django/test/client.py', 'latest.py', 'model.pth', 'contest.js', 'vite.config.ts'];
    const tasks = [
      'conftest.py',
      'a/pytest.ini',
      'tests/x.json',
      'a/test_b.py',
      'x.spec.ts',
      'golden.txt',
      'sitecustomize.py',
      'p/__snapshots__/a.test.js.snap',
      'pkg/testdata/golden.json',
      'packages/x/test/deep/a.js',
      'src/parser/tests.rs',
    ];
    const result = left([...own, ...tasks].map((name) => part(name, changed)));
    assert.deepEqual(result, { names: own, restored: tasks, sectioned: [] });
  });

  it('has everything that an honest solution may add if the hidden tests are complete', () => {
    const names = [
      'conftest.py',
      'tests/test_a.py',
      'package.json',
      '.github/x',
      'usercustomize.py',
      'sub/.git/hooks/a',
    ];
    const result = left(
      names.map((name) => part(name, added)),
      protectedPatterns({ testsInRepository: false, paths: [] }),
    );
    assert.deepEqual(result.restored, ['usercustomize.py', 'sub/.git/hooks/a']);
  });

  it('has no file that replaces a protected one', () => {
    const cases = [
      part('tests/a', deleted),
      part('tests', added),
      part('x', changed),
      part('conftest.py', deleted),
      part('conftest.py/y', added),
    ];
    assert.deepEqual(left(cases), {
      names: ['x'],
      restored: ['tests/a', 'conftest.py', 'conftest.py/y', 'tests'],
      sectioned: [],
    });
  });

  it('has no link that stands for a directory of protected files', () => {
    const link =
      'new file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n';
    const links = ['evil.egg-info', 'a/tests', 'latest'].map((name) => part(name, link));
    assert.deepEqual(left([...links, part('other.egg-info', added)]), {
      names: ['latest', 'other.egg-info'],
      restored: ['evil.egg-info', 'a/tests'],
      sectioned: [],
    });
  });

  it('has no link in the place of a directory above protected files that the base may lack', () => {
    const link =
      'new file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n';
    const tasks = ['.cargo', 'pytest', 'a/src', 'p/test/inner', 'vendor', 'vendor/any'];
    const own = ['a/.cargo', 'a/pytest', 'vendor/own', 'vendor/any/golden/deep', 'lib', 'src/lib'];
    const patterns = [...inRepository, 'vendor/*/golden/x', '!vendor/own'];
    const result = left(
      [...tasks, ...own].map((name) => part(name, link)),
      patterns,
    );
    assert.deepEqual(result, { names: own, restored: tasks, sectioned: [] });
  });

  it('names files to merge, and leaves out those that cannot be merged', () => {
    const link =
      'new file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n';
    const result = left([
      part('pyproject.toml', changed),
      part('p/package.json', link),
      part('q/package.json/x', added),
    ]);
    assert.deepEqual(result, {
      names: ['pyproject.toml'],
      restored: ['p/package.json', 'q/package.json/x'],
      sectioned: ['pyproject.toml'],
    });
  });

  it('restores such a file if its type changes or a new file blocks its path', () => {
    const link = 'new file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n';
    const result = left([
      part('package.json', deleted),
      part('package.json', link),
      part('a/package.json', deleted),
      part('a', added),
      part('setup.cfg', deleted),
      part('b/setup.cfg', deleted),
      part('b/c', added),
    ]);
    assert.deepEqual(result, {
      names: ['setup.cfg', 'b/setup.cfg', 'b/c'],
      restored: ['package.json', 'a/package.json', 'a'],
      sectioned: ['setup.cfg', 'b/setup.cfg'],
    });
  });

  it('reads the other names in a third-party part', () => {
    const renamed = 'diff --git a/a.py b/conftest.py\nsimilarity index 100%\nrename from a.py\nrename to conftest.py\n';
    const misnamed = 'diff --git a/a b/b\n--- a/a\n+++ "b/x/conftest.py"\n@@ -1 +1 @@\n-x\n+y\n';
    assert.deepEqual(left([renamed, misnamed]).names, []);
  });
});

describe('the part of a file that is about tests', () => {
  const merge = (file: string, base: string | null, now: string | null): string | null => {
    const how = sectionedFiles[file];
    assert.ok(how);
    return how(base, now);
  };
  const toml = (text: string | null): unknown => (text === null ? null : JSON.parse(JSON.stringify(parse(text))));

  it('comes from the base commit in any notation of pyproject.toml; the rest is kept', () => {
    const base = '[project]\nname = "x"\n[tool.pytest.ini_options]\naddopts = "-q"\n';
    const forged = [
      '[project]\nname = "y"\n[tool.ruff]\nline-length = 1\n[tool.pytest.ini_options]\naddopts = "-p evil"\n',
      'tool.pytest.ini_options.addopts = "-p evil"\ntool.ruff.line-length = 1\n[project]\nname = "y"\n',
      '[tool]\npytest = { ini_options = { addopts = "-p evil" } }\nruff = { line-length = 1 }\n[project]\nname = "y"\n',
      '[project]\nname = "y"\n[tool.ruff]\nline-length = 1\n',
    ];
    for (const now of forged) {
      assert.deepEqual(toml(merge('pyproject.toml', base, now)), {
        project: { name: 'y' },
        tool: { ruff: { 'line-length': 1 }, pytest: { ini_options: { addopts: '-q' } } },
      });
    }
    const honest = `# kept\n${base.replace('"x"', '"y" # to the byte')}`;
    assert.equal(merge('pyproject.toml', base, honest), honest);
    assert.deepEqual(toml(merge('pyproject.toml', base, null)), {
      tool: { pytest: { ini_options: { addopts: '-q' } } },
    });
    assert.equal(merge('pyproject.toml', '[project]\n', null), null);
    assert.equal(merge('pyproject.toml', base, '[tool.pytest\n'), base);
    assert.deepEqual(toml(merge('pyproject.toml', null, '[a]\n[tool.pytest.ini_options]\naddopts = "x"\n')), {
      a: {},
      tool: {},
    });
  });

  it('consists of the test script and the runners’ settings in package.json', () => {
    const base = '{"name":"x","scripts":{"test":"jest","build":"a"},"jest":{"bail":true}}';
    const now =
      '{"name":"y","scripts":{"pretest":"evil","test":"true","test:unit":"true","build":"b","latest":"c"},"mocha":{"require":"evil"},"dependencies":{"z":"1"}}';
    assert.deepEqual(JSON.parse(merge('package.json', base, now) ?? ''), {
      name: 'y',
      scripts: { build: 'b', latest: 'c', test: 'jest' },
      dependencies: { z: '1' },
      jest: { bail: true },
    });
    const honest = base.replace('"a"', '"b"');
    assert.equal(merge('package.json', base, honest), honest);
    assert.equal(merge('package.json', base, '{"scripts":'), base);
    assert.equal(merge('package.json', `\uFEFF${base}`, base), base);
    const evil = '\uFEFF{"scripts":{"test":"true"}}';
    assert.deepEqual(JSON.parse(merge('package.json', `\uFEFF${base}`, evil) ?? '').scripts, { test: 'jest' });
  });

  it('comes with the whole file from the base commit if the new file is nested too deeply', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const scripts = '{"scripts":{"test":"jest"}}';
    assert.equal(merge('package.json', scripts, `{"jest":${deep}}`), scripts);
    assert.equal(merge('package.json', scripts, `{"x":${deep},"scripts":{"test":"true"}}`), scripts);
    assert.equal(merge('package.json', null, `{"jest":${deep}}`), null);
    // Its indentation would be a thousand times as long.
    const indented = `${'['.repeat(1_000)}${']'.repeat(1_000)}`;
    assert.equal(merge('package.json', scripts, `{"x":${indented},"scripts":{"test":"true"}}`), scripts);
    const settings = '[tool.pytest.ini_options]\naddopts = "-q"\n';
    for (const depth of [100, 1_100, 200_000]) {
      const table = `[${'a.'.repeat(depth)}a]\n`;
      assert.equal(
        merge('pyproject.toml', settings, `${table}[tool.pytest.ini_options]\naddopts = "-p x"\n`),
        settings,
      );
      assert.equal(merge('pyproject.toml', settings, `[tool.pytest.${'a.'.repeat(depth)}a]\n`), settings);
    }
  });

  it('consists of sections in setup.cfg', () => {
    const base = '[metadata]\nname = x\n\n[tool:pytest]\naddopts = -q\n';
    const now =
      '[tool:pytest]\naddopts = -p evil\n[metadata]\nname = y\n[options]\nrequires =\n    z\n[ testenv:a ]\ncommands = evil\n';
    assert.equal(
      merge('setup.cfg', base, now),
      '[metadata]\nname = y\n[options]\nrequires =\n    z\n[tool:pytest]\naddopts = -q\n',
    );
    const honest = base.replace('x', 'y');
    assert.equal(merge('setup.cfg', base, honest), honest);
    assert.equal(merge('setup.cfg', base, null), '[tool:pytest]\naddopts = -q\n');
    assert.equal(merge('setup.cfg', null, null), null);
  });
});
