/**
 * Requires that only SQLite opens the database file, in one module. When a process closes any descriptor of a file, the system drops all
 * POSIX locks that the process holds on it: code that opens and closes the database directly would unlock it under every connection of the
 * process.
 */

import { isTest, type Law, type Module, type Node, nameOf, nodes, type Violation, violation } from './module.ts'

const STORE = 'src/memory/store.ts'
const CREATES = 'src/memory/database-file.ts'
/** The modules that create SQLite connections; the lock is an empty file of its own, and the control plane has its own database. */
const CONNECTS = new Set([STORE, 'src/memory/agent-files/folder-lock.ts', 'src/control/store/open-sqlite.ts'])

const OPENERS = new Set(
  ['open', 'readFile', 'writeFile', 'appendFile', 'copyFile', 'cp', 'truncate'].flatMap((name) => [name, `${name}Sync`]),
)
const MORE_OPENERS = new Set(['openAsBlob', 'createReadStream', 'createWriteStream', 'Bun.file', 'Bun.write'])
const DATABASE = /memory\.sqlite|\bmemory\.path\b|\bdatabase|-(?:wal|shm|journal)\b/i

export const databaseIsOpenedInOnePlace: Law = (modules) =>
  modules
    .filter((module) => module.path.startsWith('src/') && !isTest(module))
    .flatMap((module) => module.tree.filter(isCall).flatMap((call) => judge(module, call)))

function judge(module: Module, call: Node): Violation[] {
  const name = calleeOf(call)
  const given = module.text.slice(call.start, call.end)
  if (name === 'Database' || name === 'Database.open')
    return CONNECTS.has(module.path) ? [] : [violation(module, call, `a database is opened in ${STORE} alone; call openMemory`)]
  if (!opens(name)) return []
  if (module.path === CREATES && given.includes('O_EXCL')) return []
  if (!DATABASE.test(given) && !beside(module.path, given)) return []
  return [violation(module, call, `${name} of the database would drop this process's locks when it is closed; stat it, or ask SQLite`)]
}

/** In the folder of the database the law treats every opened file as the database; its subfolders hold other files. */
function beside(path: string, given: string): boolean {
  return /^src\/memory\/[^/]+$/.test(path) && !/['"`]\/proc\//.test(given)
}

function opens(name: string): boolean {
  return MORE_OPENERS.has(name) || OPENERS.has(name.split('.').at(-1) ?? '')
}

/** `openSync`, `fs.openSync`, `Bun.file`, `Database`. */
function calleeOf({ callee }: Node): string {
  const [node] = nodes(callee)
  if (node?.type !== 'MemberExpression') return nameOf(node)
  return `${nameOf(node.object)}.${nameOf(node.property)}`
}

function isCall({ type }: Node): boolean {
  return type === 'CallExpression' || type === 'NewExpression'
}
