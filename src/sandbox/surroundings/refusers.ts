/** Puts a program that refuses in the place of each forbidden executable, however a command gets to start it. */

import { existsSync, lstatSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type Refusers = {
  /** bubblewrap's mounts over the executables themselves. */
  readonly mounts: readonly string[]
  /** A folder that stands first in the PATH, for names that are links to a program with other uses. */
  readonly path: readonly string[]
}

type Refusing = {
  readonly folder: string
  readonly forbidden: readonly string[]
  /** Folders with executables. */
  readonly searched: readonly string[]
  /** Names of programs that the sandbox itself needs. */
  readonly needed: readonly string[]
}

const INSIDE = '/run/forbidden'
const makers = 'bfs btrfs cramfs exfat ext2 ext3 ext4 f2fs fat minix msdos ntfs vfat xfs'.split(' ').map((name) => `mkfs.${name}`)
/** One executable with many programs in it, among them those that remove and overwrite. */
const collections = ['busybox', 'toybox']

/** A program that is a link cannot be covered by itself: a mount follows the link and would cover the program that it leads to. */
export function prepareRefusers({ folder, forbidden, searched, needed }: Refusing): Refusers {
  if (forbidden.length === 0) return { mounts: [], path: [] }
  const names = [...new Set([...forbidden.flatMap((name) => (name === 'mkfs' ? [name, ...makers] : [name])), ...collections])]
  const kept = new Set(
    ['sh', ...needed].flatMap((name) =>
      searched
        .map((path) => join(path, name))
        .filter(existsSync)
        .map((path) => realpathSync(path)),
    ),
  )
  const found = [...new Set(searched.filter(existsSync).map((path) => realpathSync(path)))].flatMap((path) =>
    names.flatMap((name) => {
      const at = join(path, name)
      const stat = lstatSync(at, { throwIfNoEntry: false })
      if (stat === undefined || kept.has(at) || !(stat.isFile() || stat.isSymbolicLink())) return []
      return [{ at, name, link: stat.isSymbolicLink() }]
    }),
  )
  if (found.length === 0) return { mounts: [], path: [] }
  const links = [...new Set(found.filter(({ link }) => link).map(({ name }) => name))]
  const linked = join(folder, 'forbidden.links')
  mkdirSync(linked, { recursive: true })
  const script = write(join(folder, 'forbidden'), refusal)
  for (const name of links) write(join(linked, name), refusal)
  const covers = found.filter(({ link }) => !link).flatMap(({ at }) => ['--ro-bind', script, at])
  return { mounts: [...covers, ...(links.length > 0 ? ['--ro-bind', linked, INSIDE] : [])], path: links.length > 0 ? [INSIDE] : [] }
}

const refusal = `#!/bin/sh
name=\${0##*/}
case $name in
${collections.join(' | ')}) echo "$name contains forbidden commands (security.forbidden_commands), so it does not run in the sandbox" >&2 ;;
rm) echo "rm is forbidden (security.forbidden_commands); nothing was run. Use the tool file_delete, with recursive for a folder" >&2 ;;
*) echo "$name is forbidden (security.forbidden_commands); nothing was run. Ask the operator if the work needs it" >&2 ;;
esac
exit 126
`

function write(path: string, text: string): string {
  writeFileSync(path, text, { mode: 0o755 })
  return path
}
