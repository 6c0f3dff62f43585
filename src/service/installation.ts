/** Tells how this program was installed, and which commands update and remove it. It reads and changes nothing else. */

import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isObject, parseJson } from '../kit/json.ts'

export type Installation = {
  readonly kind: 'npm, global' | 'pnpm, global' | 'yarn, global' | 'bun, global' | 'npx' | 'dependency' | 'clone' | 'executable'
  /** The folder of the installation; for an executable, the file. */
  readonly place: string
  readonly update: string
  readonly remove: string
}

/** `program` is the absolute path, without links, of the executable or of bin/braidclaw. */
export function installationOf(program: string): Installation {
  if (!program.includes('/node_modules/')) return ofSources(program)
  const place = program.slice(0, program.indexOf('/node_modules/'))
  return global(place) ?? dependencyOf(place)
}

/** Recognises the folders where the package managers keep what is not part of a project. */
function global(place: string): Installation | undefined {
  const [name, path] = ['braidclaw', quoted(place)]
  if (/\/_npx\/[^/]+$/.test(place)) return { kind: 'npx', place, update: `npx ${name}@latest`, remove: `rm -r ${path}` }
  if (/\/global\/[^/]+\/\.pnpm\//.test(place))
    return { kind: 'pnpm, global', place, update: `pnpm add -g ${name}@latest`, remove: `pnpm remove -g ${name}` }
  if (/\/yarn\/global$/.test(place))
    return { kind: 'yarn, global', place, update: `yarn global add ${name}@latest`, remove: `yarn global remove ${name}` }
  if (/\/\.bun\/install\/global$/.test(place))
    return { kind: 'bun, global', place, update: `bun add -g ${name}@latest`, remove: `bun remove -g ${name}` }
  // A project in a folder named lib has a package.json; the prefix of npm has none.
  if (!place.endsWith('/lib') || existsSync(join(place, 'package.json'))) return undefined
  const npm = [0, statSync(place).uid].includes(process.getuid?.() ?? 0) ? 'npm' : 'sudo npm'
  const prefix = `--prefix ${quoted(dirname(place))}`
  return {
    kind: 'npm, global',
    place,
    update: `${npm} install -g ${prefix} ${name}@latest`,
    remove: `${npm} uninstall -g ${prefix} ${name}`,
  }
}

const managers = [
  { lock: 'pnpm-lock.yaml', add: 'pnpm add', dev: ' -D', update: 'pnpm update --latest', remove: 'pnpm remove' },
  { lock: 'yarn.lock', add: 'yarn add', dev: ' -D', update: 'yarn upgrade', remove: 'yarn remove' },
  { lock: 'bun.lock', add: 'bun add', dev: ' -d', update: 'bun update', remove: 'bun remove' },
  { lock: 'bun.lockb', add: 'bun add', dev: ' -d', update: 'bun update', remove: 'bun remove' },
  { lock: 'package-lock.json', add: 'npm install', dev: ' -D', update: 'npm update', remove: 'npm uninstall' },
] as const

/** Another package of the project may have brought it in; then the project does not name it. */
function dependencyOf(place: string): Installation {
  const { add, dev, update, remove } = managers.find(({ lock }) => existsSync(join(place, lock))) ?? managers[4]
  const { dependencies, devDependencies } = manifestIn(place)
  const named =
    isObject(devDependencies) && 'braidclaw' in devDependencies
      ? dev
      : isObject(dependencies) && 'braidclaw' in dependencies
        ? ''
        : undefined
  const there = `cd ${quoted(place)} &&`
  return {
    kind: 'dependency',
    place,
    update: named === undefined ? `${there} ${update} braidclaw` : `${there} ${add}${named} braidclaw@latest`,
    remove: `${there} ${remove} braidclaw`,
  }
}

/** A clone runs bin/braidclaw, or the dist/braidclaw that it built. */
function ofSources(program: string): Installation {
  const place = dirname(dirname(program))
  const isClone = existsSync(join(place, 'src/main.ts'))
  const path = quoted(isClone ? place : program)
  if (!isClone) return { kind: 'executable', place: program, update: `npm install -g braidclaw@latest && rm ${path}`, remove: `rm ${path}` }
  const build = program.endsWith('/dist/braidclaw') ? ' && npm run build' : ''
  return { kind: 'clone', place, update: `cd ${path} && git pull && npm ci${build}`, remove: `rm -r ${path}` }
}

function manifestIn(place: string): { readonly [name: string]: unknown } {
  try {
    const manifest = parseJson(readFileSync(join(place, 'package.json'), 'utf8'))
    return isObject(manifest) ? manifest : {}
  } catch {
    return {}
  }
}

/** Quotes a path for the shell where it needs it. */
export function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
