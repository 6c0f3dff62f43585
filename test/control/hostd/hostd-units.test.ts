/** The units in the documentation, judged by systemd itself. */

import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { executable } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'

const root = join(import.meta.dir, '../../..')

/** Returns the blocks of a page that are units; a comment in one may say where it belongs. */
function unitsIn(page: string): string[] {
  return [...readFileSync(join(root, page), 'utf8').matchAll(/```(?:ini)?\n([^`]*?)```/g)].flatMap(([, text = '']) =>
    text.includes('[Service]') ? [text] : [],
  )
}

function verified(unit: string) {
  const folder = mkdtempSync(join(tmpdir(), 'unit-'))
  const [, name = 'braidclaw-hostd'] = /system\/([a-z-]+@?)\.service/.exec(unit) ?? []
  const path = join(folder, `${name}${name.endsWith('@') ? 'one' : ''}.service`)
  writeFileSync(path, unit.replaceAll('/usr/local/bin/braidclaw', executable))
  const { exitCode, stderr } = Bun.spawnSync(['systemd-analyze', 'verify', '--man=no', path], {
    env: { ...process.env, XDG_RUNTIME_DIR: folder },
  })
  rmSync(folder, { recursive: true })
  return { exitCode, says: stderr.toString() }
}

const real = test.if(needs('systemd-analyze'))

real('systemd finds no fault in the units of hostd, of the control plane and of a worker', () => {
  const units = [...unitsIn('docs/hostd.md'), ...unitsIn('docs/control-plane-operating.md')]
  expect(units).toHaveLength(3)
  for (const unit of units) expect(verified(unit)).toEqual({ exitCode: 0, says: '' })
})

real('systemd finds a word that it does not know', () => {
  expect(verified((unitsIn('docs/hostd.md')[0] ?? '').replace('KillMode=mixed', 'KillMood=mixed')).says).toContain('KillMood')
})

test('the command line of the unit is one that hostd understands', async () => {
  const [, line = ''] = /^ExecStart=\S+ (.*)$/m.exec(unitsIn('docs/hostd.md')[0] ?? '') ?? []
  const { stderr } = Bun.spawnSync([executable, ...line.split(' ')], {
    env: { PATH: process.env.PATH ?? '', HOME: tmpdir(), BRAIDCLAW_HOME: join(tmpdir(), 'none') },
  })
  expect(stderr.toString()).toMatch(
    /the (?:group|user) "braidclaw" does not exist|the catalogue "\/etc\/braidclaw\/hostd.toml" cannot be read/,
  )
})
