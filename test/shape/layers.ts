/** Checks who may import whom: core imports core, an adapter imports core and itself, and only the shell imports several adapters. */

import { COMPUTED, type Import, isTest, type Law, type Module, type Violation } from './module.ts'

const CORE = new Set(['kernel', 'runtime', 'security', 'kit'])
const ADAPTERS = new Set(['providers', 'tools', 'workspace', 'sandbox', 'memory', 'receipts', 'discovery', 'mcp', 'service', 'http'])
/** The host opens a home once; it imports core and the adapters, but no entrance. */
const HOST = 'host'
/** Where people and programs talk to agents. */
const ENTRANCES = new Set(['channels', 'control', 'sop', 'dashboard', 'library'])
const SHELL = new Set(['main.ts', 'planck.ts', 'agent.ts', 'unix.ts', 'cli', 'config'])

/** Third-party packages that only compute. A new one needs a decision: it must use neither I/O nor the clock. */
const PURE_PACKAGES = new Set(['unbash', 'zod'])
const PURE_BUILTINS = new Set(['node:util', 'node:path'])
/** These read the working directory. */
const IMPURE_PATH = new Set(['resolve', 'relative', 'default', '*'])

/** They wait, read /proc and write files, which the core must not; adapters, the host and entrances import them. */
const SYSTEM = new Set(['src/kit/abort.ts', 'src/kit/files.ts', 'src/kit/proc.ts'])

type Layer = 'core' | 'system' | 'adapter' | 'host' | 'entrance' | 'shell' | 'unknown' | 'outside'

export function layerOf(path: string): { readonly layer: Layer; readonly folder: string } {
  const [root, first = ''] = path.split('/')
  if (root !== 'src') return { layer: 'outside', folder: '' }
  if (SYSTEM.has(path.replace(/\.test\.ts$/, '.ts'))) return { layer: 'system', folder: first }
  const folder = path.split('/').length === 2 ? first.replace(/\.test\.ts$/, '.ts') : first
  if (CORE.has(folder)) return { layer: 'core', folder }
  if (ADAPTERS.has(folder)) return { layer: 'adapter', folder }
  if (ENTRANCES.has(folder)) return { layer: 'entrance', folder }
  if (folder === HOST) return { layer: 'host', folder }
  return { layer: SHELL.has(folder) ? 'shell' : 'unknown', folder }
}

/** The dashboard's page runs in the browser and not in our process, so the laws about processes do not concern it. */
export function isInBrowser({ path }: Pick<Module, 'path'>): boolean {
  return path.startsWith('src/dashboard/page/')
}

/** The page reaches the process only over HTTP: neither imports code of the other; the page may import types. */
export const thePageStandsAlone: Law = (modules) =>
  modules.flatMap((module) =>
    module.imports
      .filter((one) => one.target !== undefined && !one.typeOnly && !one.target.endsWith('.html'))
      .filter((one) => isInBrowser(module) !== isInBrowser({ path: one.target ?? '' }))
      .map((one) => ({
        file: module.path,
        line: one.line,
        message: 'the page in the browser and the process import nothing of each other',
      })),
  )

/** The shapes of messages load zod, which costs a command more than it does itself; it takes their types, and names of states from elsewhere. */
export const commandsTakeTypesOfShapes: Law = (modules) =>
  modules
    .filter((module) => /^src\/(cli|control\/client)\//.test(module.path) && !isTest(module))
    .flatMap((module) =>
      module.imports
        .filter(({ target = '', typeOnly }) => !typeOnly && /\/contract\/[a-z-]+-shapes\.ts$/.test(target))
        .map(({ line }) => ({ file: module.path, line, message: 'a command imports only types of a shape; names are in state-names.ts' })),
    )

/** `ls src` shows the architecture, so src may contain only folders that the architecture names. */
export const everyFolderIsKnown: Law = (modules) =>
  modules
    .filter((module) => layerOf(module.path).layer === 'unknown')
    .map((module) => ({
      file: module.path,
      line: 1,
      message: 'no such folder in the architecture; move it or name it in test/shape/layers.ts',
    }))

export const coreImportsOnlyCore: Law = (modules) =>
  check(modules, 'core', (module, one) => (isCoreImport(module, one) ? undefined : 'core imports only core and pure packages'))

function isCoreImport(module: Module, one: Import): boolean {
  if (one.target !== undefined) return layerOf(one.target).layer === 'core' || (isTest(module) && layerOf(one.target).layer === 'outside')
  if (isTest(module)) return !isOurselves(one)
  if (one.specifier === 'node:path') return !one.names.some((name) => IMPURE_PATH.has(name))
  return PURE_BUILTINS.has(one.specifier) || PURE_PACKAGES.has(packageOf(one.specifier))
}

export const systemImportsOnlyCore: Law = (modules) =>
  check(modules, 'system', (module, one) =>
    one.target === undefined || isTest(module) || layerOf(one.target).layer === 'core' ? undefined : 'it imports core and what Bun has',
  )

/** The shapes that an adapter offers to the others. */
const isContract = (path: string): boolean => /^src\/[a-z]+\/contract(\.ts$|\/)/.test(path)

export const adapterImportsCoreAndItself: Law = (modules) =>
  check(modules, 'adapter', (module, one) => {
    if (one.target === undefined) return isOurselves(one) ? 'an adapter does not import the package it is part of' : undefined
    const [from, to] = [layerOf(module.path), layerOf(one.target)]
    if (to.layer === 'core' || to.layer === 'system' || (to.layer === 'adapter' && to.folder === from.folder)) return undefined
    if (to.layer === 'adapter' && one.typeOnly && isContract(one.target)) return undefined
    if (isTest(module) && to.layer === 'outside') return undefined
    return `"${from.folder}" imports core, itself and the types of another contract; let main.ts pass in the function it needs`
  })

/** The host imports neither a command nor a channel: entrances call the host, not the other way round. */
export const hostImportsNoEntrance: Law = (modules) =>
  check(modules, 'host', (module, one) => {
    if (one.target === undefined) return isOurselves(one) ? 'the host does not import the package it is part of' : undefined
    const { layer, folder } = layerOf(one.target)
    const isEntrance = layer === 'shell' ? folder !== 'config' : layer === 'entrance'
    return isEntrance || (layer === 'outside' && !isTest(module))
      ? 'the host imports core and adapters; an entrance passes in what it needs'
      : undefined
  })

/** A channel calls the host; commands and the libraries call channels, and never the other way round. */
export const entrancesImportNoCommand: Law = (modules) =>
  check(modules, 'entrance', (module, one) => {
    if (one.target === undefined) return isOurselves(one) ? 'a channel does not import the package it is part of' : undefined
    const { layer, folder } = layerOf(one.target)
    if (layer === 'outside')
      return isTest(module) || one.specifier.endsWith('/package.json') ? undefined : 'a channel imports the program alone'
    return layer === 'shell' && folder !== 'config'
      ? 'a channel imports core, adapters and the host; a command passes in what it needs'
      : undefined
  })

/** The program imports none of its tests, benchmarks or scripts, and nothing from an absolute path. */
export const theProgramStandsAlone: Law = (modules) =>
  modules
    .filter((module) => module.path.startsWith('src/') && !isTest(module))
    .flatMap((module) =>
      module.imports
        .filter((one) => isOutside(one) || one.specifier.startsWith('/') || one.specifier === COMPUTED || isOurselves(one))
        .map((one) => violationAt(module, one, 'the program imports only itself and its packages, by a literal name')),
    )

/** The build embeds package.json and the shell functions of lib/ in the executable. */
function isOutside(one: Import): boolean {
  return one.target !== undefined && layerOf(one.target).layer === 'outside' && !/^(package\.json|lib\/[\w/]+\.sh)$/.test(one.target)
}

function isOurselves(one: Import): boolean {
  return packageOf(one.specifier) === 'braidclaw'
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function check(modules: readonly Module[], layer: Layer, judge: (module: Module, one: Import) => string | undefined): Violation[] {
  return modules
    .filter((module) => layerOf(module.path).layer === layer)
    .flatMap((module) =>
      module.imports.flatMap((one) => {
        const message = judge(module, one)
        return message === undefined ? [] : [violationAt(module, one, message)]
      }),
    )
}

function violationAt(module: Module, one: Import, message: string): Violation {
  return { file: module.path, line: one.line, message: `imports "${one.specifier}": ${message}` }
}
