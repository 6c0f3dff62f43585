/** Runs inside the sandbox: evaluates the text of a configuration program, and returns its default export as JSON, or what is wrong with it. */

import { readFileSync } from 'node:fs'
import { createContext, SourceTextModule, SyntheticModule } from 'node:vm'

/** The names under which the program may import `defineConfig`. */
const ours = ['braidclaw', 'braidclaw/agent', 'braidclaw/config', 'plaited/agent']

type Fault = { readonly key: string; readonly message: string }

/** Reads `{ source, env }` from standard input. @returns `{"value": …}` or `{"faults": […]}` */
export async function runProgram(): Promise<string> {
  try {
    const value = await evaluate(JSON.parse(readFileSync(0, 'utf8')))
    const faults = faultsOf(value)
    return JSON.stringify(faults.length === 0 ? { value } : { faults })
  } catch (error) {
    const message = `it fails: ${String(Object(error).message ?? error).slice(0, 1_000)}`
    return JSON.stringify({ faults: [{ key: '', message }] })
  }
}

async function evaluate({ source, env }: { readonly source: string; readonly env: { readonly NODE_ENV?: string } }): Promise<unknown> {
  const console = Object.fromEntries(['log', 'info', 'warn', 'error', 'debug'].map((name) => [name, () => {}]))
  const context = createContext({ process: { env }, console })
  // Without this the transpiler writes "development" for the variable.
  const define = { 'process.env.NODE_ENV': JSON.stringify(env.NODE_ENV) ?? 'undefined' }
  const module = new SourceTextModule(new Bun.Transpiler({ loader: 'ts', define }).transformSync(source), { context })
  await module.link((name: string) => {
    if (!ours.includes(name)) throw new Error(`it imports ${JSON.stringify(name)}; it can import only defineConfig of "braidclaw/config"`)
    const same = (config: unknown) => config
    const exported = new SyntheticModule(['defineConfig'], () => exported.setExport('defineConfig', same), { context })
    return exported
  })
  await module.evaluate()
  const { default: value } = Object(module.namespace)
  if (value === undefined) throw new Error('it has no default export; write: export default defineConfig({ … })')
  return value
}

/** Lists everything that is not plain data. A member that is undefined is left out. */
function faultsOf(value: unknown, key = '', above: readonly unknown[] = []): Fault[] {
  const fault = (what: string): Fault[] => [{ key, message: `${what}; write plain data` }]
  if (value === null || value === undefined || typeof value === 'boolean' || typeof value === 'string') return []
  if (typeof value === 'number') return Number.isFinite(value) ? [] : fault(`${value} is not a number of JSON`)
  if (typeof value !== 'object') return fault(`it is a ${typeof value}`)
  if (above.includes(value) || above.length > 32) return fault('it contains itself, or is nested too deeply')
  const prototype: unknown = Object.getPrototypeOf(value)
  const isPlain = Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null
  if (!isPlain) return fault(`it is a ${Object.prototype.toString.call(value).slice(8, -1)}`)
  const keyOf = (name: string) => (Array.isArray(value) ? `${key}[${name}]` : key ? `${key}.${name}` : name)
  return Object.entries(value).flatMap(([name, member]) => faultsOf(member, keyOf(name), [...above, value]))
}
