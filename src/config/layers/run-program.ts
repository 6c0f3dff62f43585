/** Runs inside the sandbox: evaluates the text of a configuration program, and returns its default export as JSON, or what is wrong with it. */

import { readFileSync } from 'node:fs'
import { createContext, SourceTextModule, SyntheticModule } from 'node:vm'

/** The names under which the program may import `defineConfig`. */
const ours = ['braidclaw', 'braidclaw/agent', 'braidclaw/config', 'plaited/agent']

/** Reads `{ source, env }` from standard input. @returns `{"value": …}` or `{"failure": …}` */
export async function runProgram(): Promise<string> {
  try {
    return JSON.stringify({ value: await evaluate(JSON.parse(readFileSync(0, 'utf8'))) }, asData)
  } catch (error) {
    return JSON.stringify({ failure: `it fails: ${String(Object(error).message ?? error).slice(0, 1_000)}` })
  }
}

/** Writes what JSON would leave out as an object, which stands in no place of a configuration. */
function asData(_: string, member: unknown): unknown {
  return ['function', 'symbol', 'bigint'].includes(typeof member) ? { [typeof member]: String(member) } : member
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
