import { withRoot } from '../../harbor/with-root.ts';
import { directoryFormat } from '../directories/directory-format.ts';

/** harbor: directories in the layout that all formats are turned into, in a repository, on a hub or in an archive. */
export const harbor = directoryFormat({
  markerFile: 'task.toml',
  archive: /(?:^|\/)tasks\.tar\.gz$/,
  toFiles: (tree, _name, { options: { user } }) => (user === 'root' ? withRoot(tree) : tree),
});
