/** One place each for the database, the server and the network, so that one file at a time can be read to know what they do. */

import { isTest, type Law, type Module, type Violation, violation } from './module.ts'
import { memberOf } from './purity.ts'
import { type Reference, references } from './references.ts'

const SQLITE = ['src/memory/', 'src/discovery/', 'src/control/']
const SERVE = ['src/channels/http/', 'src/channels/http.ts', 'src/control/']
const NETWORK = ['src/workspace/net/']

const NETWORK_MODULES = new Set(
  ['http', 'https', 'http2', 'net', 'tls', 'dgram', 'dns', 'dns/promises', 'undici'].flatMap((name) => [name, `node:${name}`]),
)
const NETWORK_BUN = new Set(['fetch', 'connect', 'udpSocket', 'dns', 'listen'])
const GLOBAL_OBJECTS = new Set(['globalThis', 'global', 'self', 'window'])

export const sqliteHasItsPlaces: Law = (modules) =>
  outside(modules, SQLITE).flatMap((module) =>
    module.imports
      .filter((one) => one.specifier === 'bun:sqlite' || one.specifier === 'node:sqlite')
      .map((one) => ({ file: module.path, line: one.line, message: `"${one.specifier}" belongs to ${SQLITE.join(', ')}` })),
  )

export const serversHaveTheirPlaces: Law = (modules) =>
  outside(modules, SERVE).flatMap((module) =>
    globals(module)
      .filter((use) => use.name === 'Bun' && memberOf(use) === 'serve')
      .map((use) => violation(module, use.node, `Bun.serve belongs to ${SERVE.join(', ')}`)),
  )

/** Calling it and handing it on are both a way out: only the guarded one is ever passed in. */
export const networkHasOnePlace: Law = (modules) =>
  outside(modules, NETWORK).flatMap((module) => [
    ...globals(module)
      .filter(isNetwork)
      .map((use) =>
        violation(
          module,
          use.node,
          `${use.name}${memberOf(use) ? `.${memberOf(use)}` : ''} belongs to ${NETWORK.join(', ')}; take the guarded fetch`,
        ),
      ),
    ...module.imports
      .filter((one) => NETWORK_MODULES.has(one.specifier) && !one.typeOnly)
      .map((one) => ({ file: module.path, line: one.line, message: `"${one.specifier}" belongs to ${NETWORK.join(', ')}` })),
  ])

function isNetwork(use: Reference): boolean {
  const member = memberOf(use) ?? ''
  if (use.name === 'fetch') return true
  if (use.name === 'Bun') return NETWORK_BUN.has(member)
  return GLOBAL_OBJECTS.has(use.name) && (member === 'fetch' || member === 'Bun')
}

/** `const { serve } = Bun` and `import { serve } from 'bun'` would hide from the laws above. */
export const bunIsSpelledOut: Law = (modules) =>
  outside(modules, []).flatMap((module) => [
    ...globals(module)
      .filter((use) => use.name === 'Bun' && memberOf(use) === undefined)
      .map((use) => violation(module, use.node, 'write Bun.name where it is used, so that the laws can see it')),
    ...module.imports
      .filter((one) => one.specifier === 'bun' && !one.typeOnly)
      .map((one): Violation => ({ file: module.path, line: one.line, message: 'write Bun.name instead of importing from "bun"' })),
  ])

function globals(module: Module): Reference[] {
  return references(module.program).filter((use) => use.origin === 'global')
}

function outside(modules: readonly Module[], places: readonly string[]): Module[] {
  return modules.filter(
    (module) => module.path.startsWith('src/') && !isTest(module) && !places.some((place) => module.path.startsWith(place)),
  )
}
