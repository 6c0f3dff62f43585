/** Recognises `npx NAME` and the like where the workspace has the program itself: then nothing is downloaded, and no network is needed. */

import { type Arg, type Cwds, resolvePath, sure } from '../flow/model.ts'
import type { CommandPolicy } from '../verdict.ts'

/** The sub-commands that run a program by its name; an empty list: the runner itself does. */
const runners: { readonly [name: string]: readonly string[] } = { npx: [], bunx: [], npm: ['exec', 'x'], bun: ['x'] }

/** They change neither which program runs nor from where it comes. */
const plainFlag = /^(?:-y|--yes|--no|--no-install|-q|--quiet|--bun|--)$/

type Asked = {
  readonly name: string
  readonly args: readonly Arg[]
  readonly cwds: Cwds
  readonly policy: Pick<CommandPolicy, 'path' | 'isFile'>
}

/** Takes the program of the nearest `node_modules/.bin`, as the runners do. Where it is wrong, the command fails without a network. */
export function runsInstalled({ name, args, cwds, policy }: Asked): boolean {
  const program = programOf(name, args.map(sure))
  if (program === undefined || cwds === undefined) return false
  return cwds.every((cwd) => isInstalled(program, cwd, policy))
}

function programOf(name: string, words: readonly (string | undefined)[]): string | undefined {
  const subs = Object.hasOwn(runners, name) ? runners[name] : undefined
  if (subs === undefined || (subs.length > 0 && !subs.includes(words[0] ?? ''))) return
  const program = words.slice(Math.min(subs.length, 1)).find((word) => word === undefined || !plainFlag.test(word))
  return program !== undefined && /^\w[\w.-]*$/.test(program) ? program : undefined
}

/** A program outside the workspace is not taken: the path gate lets none run there. */
function isInstalled(program: string, cwd: string, { path, isFile }: Asked['policy']): boolean {
  for (let folder = resolvePath('.', cwd); folder !== '/'; folder = resolvePath('..', folder)) {
    const file = resolvePath(`node_modules/.bin/${program}`, folder)
    if (isFile?.(file) === true) return path(file, 'run', folder).ok
  }
  return false
}
