/** Tells which commands update and remove this program, as it was installed. It reads and changes nothing else. */

import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { quoteText } from '../security/command/syntax/quote.ts'

export type Installation = {
  /** The folder of the installation; for an executable, the file. */
  readonly place: string
  readonly update: string
  readonly remove: string
}

/** Lists the folders where package managers keep what is not part of a project. */
const globals = [
  { folder: /\/global\/[^/]+\/\.pnpm\//, add: 'pnpm add -g', remove: 'pnpm remove -g' },
  { folder: /\/yarn\/global$/, add: 'yarn global add', remove: 'yarn global remove' },
  { folder: /\/\.bun\/install\/global$/, add: 'bun add -g', remove: 'bun remove -g' },
] as const

/** These commands leave a development dependency where it is. */
const projects = [
  { lock: 'pnpm-lock.yaml', update: 'pnpm update --latest braidclaw', remove: 'pnpm remove braidclaw' },
  { lock: 'yarn.lock', update: 'yarn upgrade --latest braidclaw', remove: 'yarn remove braidclaw' },
  { lock: 'bun.lock', update: 'bun update --latest braidclaw', remove: 'bun remove braidclaw' },
  { lock: '', update: 'npm install braidclaw@latest', remove: 'npm uninstall braidclaw' },
] as const

/** `program` is the absolute path, without links, of the executable or of bin/braidclaw. */
export function installationOf(program: string): Installation {
  if (!program.includes('/node_modules/')) return ofSources(program)
  const place = program.slice(0, program.indexOf('/node_modules/'))
  const path = quoteText(place)
  if (/\/_npx\/[^/]+$/.test(place)) return { place, update: 'npx braidclaw@latest', remove: `rm -r ${path}` }
  const global = globals.find(({ folder }) => folder.test(place)) ?? npmPrefix(place)
  if (global) return { place, update: `${global.add} braidclaw@latest`, remove: `${global.remove} braidclaw` }
  const project = projects.find(({ lock }) => existsSync(join(place, lock)))
  return { place, update: `cd ${path} && ${project?.update}`, remove: `cd ${path} && ${project?.remove}` }
}

/** A project in a folder named lib has a package.json; the prefix of npm has none. */
function npmPrefix(place: string) {
  if (!place.endsWith('/lib') || existsSync(join(place, 'package.json'))) return undefined
  const npm = [0, statSync(place).uid].includes(process.getuid?.() ?? 0) ? 'npm' : 'sudo npm'
  const prefix = `-g --prefix ${quoteText(dirname(place))}`
  return { add: `${npm} install ${prefix}`, remove: `${npm} uninstall ${prefix}` }
}

/** A clone runs bin/braidclaw, or the dist/braidclaw that it built. */
function ofSources(program: string): Installation {
  const place = dirname(dirname(program))
  const path = quoteText(place)
  const build = program.endsWith('/dist/braidclaw') ? ' && npm run build' : ''
  if (existsSync(join(place, 'src/main.ts'))) return { place, update: `cd ${path} && git pull && npm ci${build}`, remove: `rm -r ${path}` }
  const remove = `rm ${quoteText(program)}`
  return { place: program, update: `npm install -g braidclaw@latest && ${remove}`, remove }
}
