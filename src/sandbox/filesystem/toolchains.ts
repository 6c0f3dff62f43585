/** Finds the user's own tools below the home folder (nvm, pyenv, cargo, uv, bun …), so that commands can use them without changing them. */

import { existsSync, statSync } from 'node:fs'
import { basename, delimiter, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { entriesIn, realOf } from '../../kit/proc.ts'
import { isWithin } from '../protect/places.ts'

export type Toolchains = {
  /** Real paths of folders and single files, outermost first: commands may read and run what is in them. */
  readonly mounts: readonly string[]
  /** Folders for the PATH of commands, in the order of the user's own PATH. */
  readonly path: readonly string[]
  /** Files and folders within the mounts that commands may not read. */
  readonly secrets: readonly string[]
  /** Variables that tell tools where they are installed. */
  readonly env: { readonly [name: string]: string }
}

type ToolchainSearch = {
  /** The user's PATH. */
  readonly path: string
  readonly home: string
  /** These are mounted or hidden in another way. */
  readonly except: readonly string[]
}

/** Folders of tools that live apart from their commands, relative to the home folder; one version or tool lies below each. */
const stores = [
  '.nvm/versions .fnm .local/share/fnm .volta/tools .n .asdf .local/share/mise .sdkman/candidates .pyenv .rbenv .goenv .nodenv .jenv .rvm',
  '.rustup/toolchains .local/share/uv .local/share/pipx .local/pipx .local/share/pnpm .local/share/rtx .local/lib .local/opt .bun .deno',
].flatMap((line) => line.split(' '))
/** They hold more than tools: only their folders of commands are mounted. */
const mixed = ['', '.local', '.cargo', '.config', 'go']
/** A folder with commands lies beside the files that they need where one of these lies beside it. */
const siblings = ['lib', 'libexec', 'share', 'versions']
const variables = { RUSTUP_HOME: '.rustup', PYENV_ROOT: '.pyenv', NVM_DIR: '.nvm', VOLTA_HOME: '.volta', SDKMAN_DIR: '.sdkman' }
const secretNames =
  /^(credentials(\..*)?|\.?npmrc|\.pypirc|\.netrc|auth\.json|\.env(\..*)?|id_(rsa|dsa|ecdsa|ed25519)|.*token.*|secrets?(\..*)?)$/i
const MOST_LINKS = 500

export function findToolchains({ path, home, except }: ToolchainSearch): Toolchains {
  const root = realOf(home)
  const folders = [
    ...new Set(
      path
        .split(delimiter)
        .filter(isAbsolute)
        .flatMap((one) => (existsSync(one) ? [realOf(one)] : [])),
    ),
  ].filter((one) => one !== root && isWithin(one, root) && !except.some((other) => isWithin(one, other) || isWithin(other, one)))
  const found = [...new Set(folders.flatMap((folder) => [prefixOf(folder, root), ...targetsOf(folder, root)]))]
    .concat(folders.some((folder) => folder === join(root, '.cargo/bin')) ? rustup(root) : [])
    .filter((one) => !except.some((other) => isWithin(one, other) || isWithin(other, one)))
  const mounts = found.filter((one) => !found.some((other) => other !== one && isWithin(one, other))).toSorted()
  const env = Object.entries(variables).flatMap(([name, place]) => {
    const at = join(root, place)
    return mounts.some((mount) => isWithin(mount, at) || isWithin(at, mount)) ? [[name, at]] : []
  })
  return { mounts, path: folders, secrets: mounts.flatMap(secretsIn), env: Object.fromEntries(env) }
}

/** rustup's commands choose a toolchain when they start; its settings name the default one. */
function rustup(root: string): string[] {
  return ['toolchains', 'settings.toml'].map((name) => join(root, '.rustup', name)).filter(existsSync)
}

/** @returns what is mounted for a folder with commands: the whole installation around it, or only the folder */
function prefixOf(folder: string, root: string): string {
  const store = storeOf(folder, root)
  if (store !== undefined) return store
  const above = dirname(folder)
  const whole =
    /^(s?bin|shims)$/.test(basename(folder)) &&
    !mixed.includes(relative(root, above)) &&
    siblings.some((name) => existsSync(join(above, name)))
  return whole ? above : folder
}

function storeOf(path: string, root: string): string | undefined {
  const store = stores.map((name) => join(root, name)).find((name) => isWithin(path, name))
  return store === undefined || !existsSync(store) ? undefined : realOf(store)
}

/** @returns what the links in a folder with commands need */
function targetsOf(folder: string, root: string): string[] {
  const links = entriesIn(folder).filter((entry) => entry.isSymbolicLink())
  return links.slice(0, MOST_LINKS).flatMap(({ name }) => {
    const at = join(folder, name)
    if (!existsSync(at)) return []
    const target = realOf(at)
    if (isWithin(target, folder) || !isWithin(target, root) || !isProgram(target)) return []
    const prefix = storeOf(target, root) ?? prefixOf(dirname(target), root)
    return [prefix === dirname(target) && relative(root, prefix).split(sep).length < 2 ? target : prefix]
  })
}

function isProgram(path: string): boolean {
  const stat = statSync(path)
  return stat.isFile() && (stat.mode & 0o111) !== 0
}

/** Package managers keep such files at the top of their folder, not among the packages. */
function secretsIn(folder: string): string[] {
  return entriesIn(folder).flatMap((entry) => (secretNames.test(entry.name) && !entry.isSymbolicLink() ? [join(folder, entry.name)] : []))
}
