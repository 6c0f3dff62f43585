/** Runs real shell scripts with `braidclaw` on their PATH. */

import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { executable, type Nest, type Result } from './cli.ts'

/** Makes the backend answer "stub response N" to everything. */
export const stub = { BRAIDCLAW_LLM_BACKEND: 'stub' }

/** Runs in the workspace, with pipefail; stdin is empty. */
export async function shell(at: Nest, script: string, env: { readonly [name: string]: string } = stub): Promise<Result> {
  const link = join(at.dir, 'braidclaw')
  if (!existsSync(link)) symlinkSync(executable, link)
  const child = Bun.spawn(['bash', '--norc', '-o', 'pipefail', '-c', script], {
    cwd: at.workspace,
    env: { ...at.env, ...env, PATH: `${at.dir}:${at.env.PATH}` },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const late = setTimeout(() => child.kill('SIGKILL'), 20_000)
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  await child.exited
  clearTimeout(late)
  return { code: child.signalCode ? null : child.exitCode, stdout, stderr }
}
