/** What a newcomer types after `npm ci`: npx finds the program in its own folder, with no registry and no bun in sight. */

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeep } from '../support/tier.ts'

const root = join(import.meta.dir, '../..')

test.each(isDeep ? ['.', 'src'] : ['src'])('npx braidclaw runs from %s', async (folder) => {
  const home = mkdtempSync(join(tmpdir(), 'braidclaw-npx-'))
  const env = { PATH: withoutBun(process.env.PATH ?? ''), HOME: home, npm_config_registry: 'http://127.0.0.1:9/' }
  const child = Bun.spawn(['npx', 'braidclaw', '--version'], { cwd: join(root, folder), env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  rmSync(home, { recursive: true, force: true })
  const { version } = await Bun.file(join(root, 'package.json')).json()
  expect({ stdout, stderr, code }).toEqual({ stdout: `${version}\n`, stderr: '', code: 0 })
})

function withoutBun(path: string): string {
  return path
    .split(':')
    .filter((folder) => !folder.includes('node_modules'))
    .join(':')
}
