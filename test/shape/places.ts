/** Restricts the database, the server and the network to one place each, so that reading one file at a time shows what each does. */

import { isTest, type Law, type Module, type Node, nameOf, nodes, type Violation, violation } from './module.ts'
import { memberOf } from './purity.ts'
import { type Reference, references } from './references.ts'

const SQLITE = ['src/memory/', 'src/discovery/', 'src/control/']
const SERVE = ['src/http/']
/** hostd's Unix socket is the other place: it connects to no host. */
const NETWORK = ['src/workspace/net/', 'src/control/hostd/client.ts', 'src/control/hostd/serve-socket.ts']

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

/** Calling fetch and passing it on both reach the network: only the guarded fetch may be passed in. */
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

/** Only the host opens memory for all users, and tests do. */
const OPENS_MEMORY = ['src/host/open/open-records.ts']

export const memoryIsOpenedByTheHost: Law = (modules) =>
  outside(
    modules.filter(({ path }) => !isFixture(path)),
    OPENS_MEMORY,
  ).flatMap((module) =>
    module.imports
      .filter((one) => one.target === 'src/memory/memory.ts' && !one.typeOnly)
      .map((one) => ({
        file: module.path,
        line: one.line,
        message: `memory is opened in ${OPENS_MEMORY.join(', ')}; go through the host`,
      })),
  )

/** Waiting code is woken by events; only these modules poll, or repeat an activity signal. */
const REPEATS = ['src/host/events/home-poll.ts', 'src/service/', 'src/channels/answer-message.ts']

export const lookingAgainHasItsPlaces: Law = (modules) =>
  outside(modules, REPEATS).flatMap((module) =>
    globals(module)
      .filter((use) => use.name === 'setInterval')
      .map((use) => violation(module, use.node, `setInterval belongs to ${REPEATS.join(', ')}; have whoever knows say so`)),
  )

/** All output goes through the printer, which escapes it: only these files may touch a stream or a descriptor of the terminal. */
const PRINTING = [
  'src/channels/terminal/printer.ts',
  'src/channels/terminal/descriptor.ts',
  'src/channels/terminal/screen/line-reader.ts',
  'src/channels/terminal/screen/screen-editor.ts',
  'src/channels/terminal/tty.ts',
]
/** Programs without the printer; they escape their output themselves, or it comes from no outside source. */
const PROGRAMS = [
  'src/main.ts',
  'src/planck.ts',
  'src/sandbox/landlock/landlock-launch.ts',
  'src/library/stdio/transports.ts',
  'src/cli/commands/talk/stdio.ts',
]
/** Names that a confined command finds, and programs that tests start. */
const NAMED = ['src/sandbox/bubblewrap/view.ts', 'src/sandbox/leftovers.fixture.ts', 'src/service/fifo/fixture.ts']
const RAW = ['src/channels/terminal/descriptor.ts']
/** Names of the terminal, and ways to pass it to a child process. */
const TERMINALS = new Set([
  '/dev/tty',
  '/dev/stdout',
  '/dev/stderr',
  '/dev/fd/1',
  '/dev/fd/2',
  '/proc/self/fd/1',
  '/proc/self/fd/2',
  'inherit',
])

export const printingHasOnePlace: Law = (modules) =>
  outside(
    modules.filter(({ path }) => !isFixture(path)),
    [...PRINTING, ...PROGRAMS, ...NAMED],
  ).flatMap((module) => [
    ...globals(module)
      .filter(isPrinting)
      .map((use) => violation(module, use.node, `${use.name}.${memberOf(use) ?? '…'} belongs to the printer; write to context.process`)),
    ...module.tree
      .filter((node) => node.type === 'Literal' && typeof node.value === 'string' && TERMINALS.has(node.value))
      .map((node) => violation(module, node, `"${String(node.value)}" goes past the printer`)),
    ...module.tree.filter(writesToTerminal).map((node) => violation(module, node, 'a write to descriptor 1 or 2 goes past the printer')),
    ...module.imports
      .filter((one) => !one.typeOnly && isWayAround(module, one))
      .map((one) => ({ file: module.path, line: one.line, message: `"${one.specifier}" goes past the printer` })),
  ])

/** A fixture is beside the tests that use it, and not part of the program. */
function isFixture(path: string): boolean {
  return /[/.]fixture\.ts$/.test(path)
}

function isPrinting(use: Reference): boolean {
  const member = memberOf(use)
  if (use.name === 'console') return true
  if (use.name === 'Bun') return member === 'stdout' || member === 'stderr'
  return use.name === 'process' && (member === undefined || member === 'stdout' || member === 'stderr')
}

/** `printer.ts` opens the descriptor of stdout, and `context.ts` the printer of stderr. */
function isWayAround({ path }: Module, { specifier, target }: Module['imports'][number]): boolean {
  if (['node:tty', 'tty', 'node:process', 'process', 'node:console', 'console'].includes(specifier)) return true
  return RAW.includes(target ?? '') && !['src/channels/terminal/printer.ts', 'src/cli/context.ts'].includes(path)
}

function writesToTerminal(node: Node): boolean {
  if (node.type !== 'CallExpression') return false
  const [callee] = nodes(node.callee)
  const [first] = nodes(node.arguments)
  const name = callee?.type === 'MemberExpression' ? nameOf(callee.property) : callee ? nameOf(callee) : ''
  return (
    /^(?:writeSync|writevSync|writeFileSync|appendFileSync|createWriteStream|file)$/.test(name) &&
    (first?.value === 1 || first?.value === 2)
  )
}

/** `const { serve } = Bun` and `import { serve } from 'bun'` would bypass the laws above. */
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
  return references(module).filter((use) => use.origin === 'global')
}

function outside(modules: readonly Module[], places: readonly string[]): Module[] {
  return modules.filter(
    (module) => module.path.startsWith('src/') && !isTest(module) && !places.some((place) => module.path.startsWith(place)),
  )
}
