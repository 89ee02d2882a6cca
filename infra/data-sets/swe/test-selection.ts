import { patchedFiles } from './test-patch.ts';

/** Files of a test patch that are data, not tests. */
const dataFile = /\.(?:json|png|csv|txt|md|jpg|jpeg|pkl|yml|yaml|toml)$/;

/** The arguments that make a repository's test runner run the tests of a test patch: files, case names or module names. */
export function testSelection(repository: string, testPatch: string): readonly string[] {
  // mypy's cases are sections of data files, selected by name.
  if (repository === 'python/mypy') {
    const cases = [...testPatch.matchAll(/\[case ([^\]\s]+)\]/g)].map(([, name = '']) => name);
    return cases.length === 0 ? [] : [[...new Set(cases)].join(' or ')];
  }
  const files = patchedFiles(testPatch)
    .filter(({ path, written }) => written && !dataFile.test(path))
    .map(({ path }) => path);
  if (repository !== 'django/django') return files;
  // Django's runner takes names of Python modules: templates and browser scripts have none.
  return files
    .filter((path) => path.endsWith('.py'))
    .map((path) =>
      path
        .slice(0, -'.py'.length)
        .replace(/^tests\//, '')
        .replaceAll('/', '.'),
    );
}
