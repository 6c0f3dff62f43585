/** Makes a project of texts for the tests, where a text that begins with "→ " is a link, and rules of a TOML text. */

import { parse } from 'smol-toml'

import { createProject, type Project, type Tree } from './project.ts'
import { parseStructure, type StructureRule } from './rules.ts'

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

/** @throws Error that names every mistake */
export function rulesOf(toml: string): readonly StructureRule[] {
  const { rules, problems } = parseStructure({ data: parse(toml), problems: [], place: () => undefined })
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return rules
}

/** Rules that most tests use, and a file that they forbid to import. */
export const ui =
  '[blocks]\nui = "src/ui/"\ndatabase = ["src/db/", "package:pg"]\n[rules.ui-without-database]\nfiles = "ui"\nimports_no = "database"'
export const data = { 'src/db/x.ts': '' }
