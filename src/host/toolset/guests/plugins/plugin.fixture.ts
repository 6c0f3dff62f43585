/** Provides tests with a home that has approved plugins in Python, which speak JSON-RPC. */

import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Setup } from '../../../api.ts'
import { createHostContext } from '../../../setup/context.ts'
import { loadSetup } from '../../../setup/setup.ts'
import { openPlugins } from './plugins.ts'

/** Answers the greeting and questions for health; `body` sees `method`, `id` and `params`, and calls `send` and `answer`. */
export const server = (body: string) => `#!/usr/bin/env python3
import json, os, sys, time
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def answer(result):
    send(id=id, result=result)
def message(**params):
    send(method="message", params=params)
for line in sys.stdin:
    asked = json.loads(line)
    method, id, params = asked["method"], asked.get("id"), asked.get("params", {})
    if method == "hello":
        answer({"protocol": 1})
    if method == "health":
        answer({})
${body.replace(/^/gm, '    ')}
`

/** Writes a plugin with a process into the folder. */
export function writePlugin(folder: string, name: string, capability: string, program: string, more = ''): string {
  mkdirSync(folder, { recursive: true })
  const manifest = `name = "${name}"\nversion = "1"\ncapabilities = ["${capability}"]\nprocess = "./serve"\n${more}`
  writeFileSync(join(folder, 'manifest.toml'), manifest)
  writeFileSync(join(folder, 'serve'), program)
  chmodSync(join(folder, 'serve'), 0o755)
  return folder
}

export type PluginStage = Disposable & {
  readonly setup: Setup
  readonly home: string
  readonly workspace: string
  readonly lines: readonly string[]
  put(name: string, body: string, more?: string): void
  approve(name: string): Promise<void>
  readonly plugins: ReturnType<typeof openPlugins>
}

export function stagePlugins(capability: 'channel' | 'provider', config = ''): PluginStage {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-plugin-')))
  const [user, workspace] = [join(root, 'home'), join(root, 'ws')]
  const home = join(user, '.braidclaw')
  for (const path of [workspace, home]) mkdirSync(path, { recursive: true })
  writeFileSync(join(home, 'config.toml'), `workspace_dir = "${workspace}"\n${config}`)
  const lines: string[] = []
  const context = createHostContext({
    env: { HOME: user, PATH: process.env.PATH ?? '', API_KEY: 'q9f8e7d6c5b4' },
    channels: [],
    say: (line) => void lines.push(line),
  })
  const setup = loadSetup({ ...context, cwd: workspace })
  const plugins = openPlugins(home)
  return {
    setup,
    home,
    workspace,
    lines,
    plugins,
    put: (name, body, more) => void writePlugin(join(home, 'plugins', name), name, capability, server(body), more),
    async approve(name) {
      await plugins.approve(name, plugins.sound(name).files.digest)
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}
