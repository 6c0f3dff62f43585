/** Makes a tree of texts for the tests; a text that begins with "→ " is a link. */

import { createProject, type Project, type Tree } from './project.ts'

export type Files = { readonly [path: string]: string }

function treeOf(files: Files): Tree {
  const folders = new Set(Object.keys(files).flatMap((path) => path.split('/').map((_, at, all) => all.slice(0, at).join('/'))))
  return {
    root: '/project',
    kind: (path) =>
      files[path]?.startsWith('→ ') ? 'link' : files[path] !== undefined ? 'file' : folders.has(path) ? 'folder' : undefined,
    target: (path) => files[path]?.slice(2),
    text: (path, most) => ((files[path]?.length ?? 0) > most ? undefined : files[path]),
    names: (folder) => {
      const start = folder === '' ? '' : `${folder}/`
      return [
        ...new Set(Object.keys(files).flatMap((path) => (path.startsWith(start) ? (path.slice(start.length).split('/')[0] ?? []) : []))),
      ]
    },
  }
}

export function projectOf(files: Files): Project {
  return createProject(treeOf(files))
}
