import { expect, test } from 'bun:test'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeSecret } from './screen.ts'

test('a secret goes into a new file of its owner alone: neither into one that others have open, nor through a link', () => {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-secret-'))
  const [path, link] = [join(folder, 'a.key'), join(folder, 'b.key')]
  writeFileSync(path, 'theirs\n', { mode: 0o644 })
  const open = openSync(path, 'r')
  writeSecret(path, 'cpa_secret')
  expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual(['cpa_secret\n', 0o600])
  expect(readFileSync(open, 'utf8')).toBe('theirs\n')
  closeSync(open)
  symlinkSync(join(folder, 'elsewhere'), link)
  expect(() => writeSecret(link, 'cpa_secret')).toThrow('it is not a regular file; it was made: revoke it')
  expect(readdirSync(folder).sort()).toEqual(['a.key', 'b.key'])
  rmSync(folder, { recursive: true })
})
