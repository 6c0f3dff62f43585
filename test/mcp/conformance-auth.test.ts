/** The official conformance package judges our login. Its cross-app access is not tried. */

import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { given } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'

const conformance = join(import.meta.dir, '../control/foreign/node_modules/@modelcontextprotocol/conformance/dist/index.js')
const isInstalled = given(existsSync(conformance), 'the conformance package (scripts/setup-debian --tests)')
const folder = mkdtempSync(join(tmpdir(), 'conformance-auth-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const quick = ['metadata-default', 'basic-cimd', 'scope-step-up', 'pre-registration', 'resource-mismatch', 'client-credentials-basic']
const thorough = [
  'client-credentials-jwt',
  'metadata-var1',
  'metadata-var2',
  'metadata-var3',
  'scope-from-www-authenticate',
  'scope-from-scopes-supported',
  'scope-omitted-when-undefined',
  'scope-retry-limit',
  'token-endpoint-auth-basic',
  'token-endpoint-auth-post',
  'token-endpoint-auth-none',
  '2025-03-26-oauth-endpoint-fallback',
  'offline-access-scope',
  'offline-access-not-supported',
]

async function run(scenario: string): Promise<{ readonly code: number; readonly said: string }> {
  const command = `${process.execPath} ${join(import.meta.dir, 'conformance-login-client.ts')}`
  const child = Bun.spawn([process.execPath, conformance, 'client', '--command', command, '--scenario', `auth/${scenario}`], {
    cwd: folder,
    env: { ...process.env, TMPDIR: folder },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, said: stdout + stderr }
}

for (const scenario of [...quick, ...(isDeep ? thorough : [])])
  test.if(isInstalled)(`auth/${scenario}`, async () => {
    const { code, said } = await run(scenario)
    expect(said).toMatch(/Passed: (\d+)\/\1, 0 failed, 0 warnings/)
    expect(code).toBe(0)
  })

test.if(isInstalled)('the old layout whose metadata names another issuer than its address is refused, against mix-up', async () => {
  const { said } = await run('2025-03-26-oauth-metadata-backcompat')
  expect(said).toContain('Issuer mismatch')
})
