/** Has the receipts checked by a process of its own: the check of a long log takes seconds, which nothing else here should wait for. */

import { isObject } from '../../../kit/json.ts'
import { ownProgram } from '../../../service/own-program.ts'
import type { Setup } from '../../api.ts'
import type { ReceiptCheck, VerifyOptions } from '../../contract/records-api.ts'
import { FailureError } from '../../failure.ts'

/** @throws FailureError when the check itself could not be made */
export async function verifyInChild({ context, paths }: Setup, { deep = false, against }: VerifyOptions): Promise<ReceiptCheck> {
  const words = [...(deep ? ['--deep'] : []), ...(against === undefined ? [] : ['--against', against])]
  const child = Bun.spawn([ownProgram(), 'receipt', 'verify', '--json', ...words], {
    cwd: context.cwd,
    env: { ...context.env, BRAIDCLAW_HOME: paths.home },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  await child.exited
  const found = parsed(stdout, deep)
  if (!found) throw new FailureError('error', `the receipts could not be checked: ${stderr.trim() || `exit code ${child.exitCode}`}`)
  return found
}

/** Reads what `receipt verify --json` prints: there `deep` are the places where receipts and journal disagree. */
function parsed(text: string, deep: boolean): ReceiptCheck | undefined {
  try {
    const found: { readonly [key: string]: unknown } = JSON.parse(text)
    return {
      ok: found.ok === true,
      deep,
      count: Number(found.count),
      completeness: String(found.completeness),
      problems: [...list(found.problems).map(brokenAt), ...list(found.deep).map(messageOf)],
      warnings: [...list(found.warnings).map(messageOf), ...list(found.older).map((message) => `of an older version: ${message}`)],
      unfinished: list(found.unfinished).map(String),
    }
  } catch {
    return undefined
  }
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function messageOf(problem: unknown): string {
  return isObject(problem) ? String(problem.message) : String(problem)
}

function brokenAt(problem: unknown): string {
  const message = messageOf(problem)
  return isObject(problem) && problem.kind !== 'database' ? `invalid chain at receipt ${problem.record}: ${message}` : message
}
