/** Provides contexts, acts and plain files on a real disk, behind the small interface of the file tools, for the tests. */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { JsonObject } from '../kit/json.ts'
import { startTick } from '../kit/proc.ts'
import type { Act, Tool, ToolContext } from '../runtime/port.ts'
import type { Workspace } from '../workspace/contract.ts'
import type { ShellPlan } from './builtin/shell.ts'

export type Folder = Disposable & { readonly root: string; put(path: string, text: string | Uint8Array): void }

export function createFolder(): Folder {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-tools-')))
  return {
    root,
    put(path, text) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** Has no gate and no limits: the workspace provides those and tests them. It skips a folder named `forbidden`. */
export function plainFiles(root: string): Pick<Workspace, 'root' | 'walk' | 'scan' | 'stat'> {
  return {
    root,
    stat(path) {
      const stat = statSync(join(root, path), { throwIfNoEntry: false })
      if (!stat) return { ok: false, message: `"${path}" does not exist` }
      return { ok: true, path, type: 'directory', size: stat.size, mtimeMs: stat.mtimeMs, mode: stat.mode }
    },
    *walk(path, { onSkip } = {}) {
      for (const entry of readdirSync(join(root, path), { recursive: true, withFileTypes: true }).sort((a, b) =>
        a.name < b.name ? -1 : 1,
      )) {
        const name = join(entry.parentPath, entry.name).slice(root.length + 1)
        if (entry.name === 'forbidden') onSkip?.(name, 'forbidden_paths')
        if (entry.isFile()) yield name
      }
    },
    scan(path, { onLine }) {
      if (statSync(join(root, path)).size > 64 * 1024 * 1024) return { ok: true, path, binary: false, complete: false }
      const lines = readFileSync(join(root, path), 'utf8').split('\n')
      lines.every((line, index) => onLine(index + 1, () => line))
      return { ok: true, path, binary: false, complete: true }
    },
  }
}

export function context(changes: Partial<ToolContext> = {}): ToolContext {
  return { conversationId: 'c', callId: 'call_1', signal: new AbortController().signal, plan: 'p', ...changes }
}

export function act(name: string, input: JsonObject = {}): Parameters<Act>[0] {
  const judgement = { verdict: 'allow', risk: 'low', rule: 'r', reason: 'r', plan: 'p', summary: 's', writes: [] } as const
  return { type: 'act', id: 'call_1', call: { id: 'call_1', name, input }, judgement }
}

export function script(text: string, cwd: string): ShellPlan {
  return { plan: { kind: 'script', script: text }, cwd }
}

export function tool(invoke: Tool['invoke'], changes: Partial<Tool> = {}): Tool {
  const parameters = { type: 'object', properties: {} } as const
  return { name: 't', description: 't', parameters, risk: 'low', timeoutMs: 1_000, idempotent: true, touches: () => [], invoke, ...changes }
}

/** Resolves when the process has ended: a loaded machine takes a moment after SIGKILL. An unreaped zombie counts as ended. */
export async function gone(pid: number): Promise<void> {
  while (startTick(pid) !== undefined) await Bun.sleep(1)
}
