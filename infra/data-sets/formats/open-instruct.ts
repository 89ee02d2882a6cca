import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { harborFiles } from '../../harbor/harbor-files.ts';
import { directoryFormat } from '../directories/directory-format.ts';
import { publishedFiles } from '../directories/published-files.ts';

/**
 * open-instruct: directories with `instruction.md`, `tests/test.sh`, `environment/seeds/` for the workspace, and optionally
 * `image.txt` and `setup.sh`, published as `task-data.tar.gz`. The tests write `/logs/verifier/reward.txt` themselves.
 */
export const openInstruct = directoryFormat({
  markerFile: 'instruction.md',
  archive: /(?:^|\/)task-data\.tar\.gz$/,
  toFiles(tree, name, { options }) {
    const files = publishedFiles(tree, name);
    files.text('tests/test.sh');
    const image = files.textOr('image.txt', '').trim() || options.image;
    if (image === undefined) {
      const text = `${name}/image.txt: expected an image, got nothing; write the file, or name an image for all tasks with ?image=`;
      throw new TemperFailure('MalformedTask', text);
    }
    const setup = files.textOr('setup.sh', null);
    return harborFiles({
      instruction: files.text('instruction.md'),
      image,
      workdir: '/workspace',
      workspace: files.below('environment/seeds/'),
      gradedIn: 'fresh',
      setup: setup === null ? [] : [setup],
      tests: files.below('tests/'),
      solution: files.below('solution/'),
    });
  },
});
