/** Runs the tests of a plugin's folder, approved or not: in the sandbox, on an empty workspace, without a model. */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { quote } from '../../../../kit/text.ts'
import type { SandboxKind } from '../../../../sandbox/contract.ts'
import type { Setup } from '../../../api.ts'
import { FailureError } from '../../../failure.ts'
import { copyFolder } from '../folders/folder-files.ts'
import { ownDeps } from './plugin-service.ts'
import { toolsOf } from './plugin-tools.ts'
import { checkFolder } from './plugins.ts'

/** `why` is absent when the test passed. */
type Tested = { readonly tool: string; readonly why?: string }

type Testing = { readonly folder: string; readonly sandbox: SandboxKind; readonly setupIn: (workspace: string) => Setup }

/** @throws FailureError when there is nothing to test */
export async function testPlugin(home: string, { folder, sandbox, setupIn }: Testing): Promise<readonly Tested[]> {
  const { manifest, files } = checkFolder(folder, folder)
  if (manifest.tests.length === 0)
    throw new FailureError('error', `${folder} has no tests; write [[tests]] with tool, arguments and output into its manifest`)
  mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 })
  const place = mkdtempSync(join(home, 'run', 'plugin-test-'))
  const [workspace, copy] = [join(place, 'workspace'), join(place, 'plugin')]
  mkdirSync(workspace)
  const closed = new AbortController()
  const setup = setupIn(workspace)
  const { limits } = setup.config
  const { deps, close } = ownDeps(setup, closed.signal, sandbox)
  try {
    copyFolder(folder, copy, files.digest)
    const tools = toolsOf({ setup, deps, manifest, folder: copy, digest: files.digest, source: folder, changed: () => undefined })
    const tested: Tested[] = []
    for (const { tool, input, output } of manifest.tests) {
      const context = { conversationId: 'test', callId: 'test', plan: '', signal: AbortSignal.timeout(limits.toolTimeoutS * 1_000) }
      const result = await tools.find(({ name }) => name === tool)?.invoke(input, context)
      const said = result?.success ? quote(result.output) : `the error ${quote(result?.error)}`
      tested.push({ tool, ...(result?.success && result.output === output ? {} : { why: `expected ${quote(output)}, got ${said}` }) })
    }
    return tested
  } finally {
    closed.abort()
    close()
    rmSync(place, { recursive: true, force: true })
  }
}
