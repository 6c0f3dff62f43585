import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import type { Check } from '../contract.ts'
import { createFixture } from '../fixture.ts'
import { openWorkspace } from '../workspace.ts'

describe('what is refused', () => {
  test('nothing is written outside, directly, by dots or through links, and nothing is created on the way', () => {
    using fixture = createFixture()
    const { workspace, root, outside } = fixture
    symlinkSync(outside, join(root, 'door'))
    symlinkSync(join(outside, 'secret.txt'), join(root, 'file-link'))
    symlinkSync(join(outside, 'new.txt'), join(root, 'dangling'))
    symlinkSync(join(outside, 'new'), join(root, 'dangling-folder'))
    const paths = [join(outside, 'x'), '../outside/x', 'door/x', 'door/a/b/c', 'file-link', 'dangling', 'dangling-folder/a/b']
    for (const path of paths) expect(workspace.writeText(path, 'ESCAPED')).toMatchObject({ ok: false, denied: 'workspace_only' })
    expect(readdirSync(outside)).toEqual(['secret.txt'])
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe('OUTSIDE')
  })

  test('a protected file cannot be created, and its folder is not made for it', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    expect(workspace.writeText('.git/config', 'x')).toMatchObject({ ok: false, denied: 'protected' })
    expect(existsSync(join(root, '.git'))).toBe(false)
    symlinkSync('.git', join(root, 'g'))
    mkdirSync(join(root, '.git'))
    expect(workspace.writeText('g/config', 'x')).toMatchObject({ ok: false, denied: 'protected' })
    expect(workspace.editText('g/config', { find: 'a', put: 'b' })).toMatchObject({ ok: false })
  })

  test('a folder, a read-only file, a file used as a folder and half a surrogate are refused in words', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    mkdirSync(join(root, 'folder'))
    writeFileSync(join(root, 'locked'), 'keep')
    chmodSync(join(root, 'locked'), 0o444)
    const message = (path: string, text = 'x') => {
      const answer = workspace.writeText(path, text)
      return answer.ok ? 'ok' : answer.message
    }
    expect(message('folder')).toContain('is a folder')
    expect(message('new/')).toContain('names a folder')
    expect(message('locked')).toBe('"locked" is read-only (mode 444)')
    expect(message('locked/below')).toContain('is a file, not a folder')
    expect(message('half', '\ud800')).toContain('half a surrogate pair')
    expect(readFileSync(join(root, 'locked'), 'utf8')).toBe('keep')
  })

  test('a full disk leaves the old file whole and no temporary one', async () => {
    using fixture = createFixture()
    const { root } = fixture
    writeFileSync(join(root, 'f'), 'old')
    // The file size limit of a child makes write(2) short and then fail, as a full disk does.
    const script = `
      import { openWorkspace } from ${JSON.stringify(join(import.meta.dir, '../workspace.ts'))}
      const answer = openWorkspace({ root: ${JSON.stringify(root)}, check: () => ({ ok: true }) }).writeText('f', 'x'.repeat(100_000))
      console.log(JSON.stringify(answer))`
    const limited = ['bash', '-c', 'trap "" XFSZ; ulimit -f 8; exec "$0" -e "$1"', process.execPath, script]
    const child = Bun.spawn(limited, { stdout: 'pipe', stderr: 'pipe' })
    const answer = JSON.parse(await new Response(child.stdout).text())
    expect(answer).toMatchObject({ ok: false, message: expect.stringContaining('what was there is unchanged') })
    expect(readdirSync(root)).toEqual(['f'])
    expect(readFileSync(join(root, 'f'), 'utf8')).toBe('old')
  })
})

describe('writing', () => {
  test('missing folders are made, and the file holds exactly the text', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    expect(workspace.writeText('a/b/ü c/f.txt', 'hé\r\n')).toEqual({
      ok: true,
      path: 'a/b/ü c/f.txt',
      bytes: 5,
      created: true,
      seen: expect.any(Array),
      note: '5 bytes',
    })
    expect(readFileSync(join(root, 'a/b/ü c/f.txt'), 'utf8')).toBe('hé\r\n')
    expect(readdirSync(join(root, 'a/b/ü c'))).toEqual(['f.txt'])
    expect(workspace.writeText('a/b/ü c/f.txt', '')).toMatchObject({ ok: true, bytes: 0, created: false })
  })

  test('the mode of a file is kept, a new one follows the umask', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'run.sh'), 'x')
    chmodSync(join(root, 'run.sh'), 0o750)
    workspace.writeText('run.sh', 'y')
    workspace.writeText('new', 'y')
    expect(statSync(join(root, 'run.sh')).mode & 0o777).toBe(0o750)
    expect(statSync(join(root, 'new')).mode & 0o777).toBe(0o666 & ~process.umask())
  })

  test('a link inside is written through, a dangling one creates its end, a hard link is cut off', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'real'), 'old')
    symlinkSync('real', join(root, 'link'))
    symlinkSync('deep/later', join(root, 'later'))
    linkSync(join(root, 'real'), join(root, 'hard'))
    expect(workspace.writeText('link', 'new')).toMatchObject({ ok: true, path: 'real' })
    expect(workspace.writeText('later', 'made')).toMatchObject({ ok: true, path: 'deep/later', created: true })
    expect(readFileSync(join(root, 'real'), 'utf8')).toBe('new')
    expect(readFileSync(join(root, 'hard'), 'utf8')).toBe('old')
    expect(readFileSync(join(root, 'deep/later'), 'utf8')).toBe('made')
  })

  test('any well-formed text is read back as it was written', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        rmSync(join(root, 'f'), { force: true })
        workspace.writeText('f', text)
        const back = workspace.readBytes('f', { maxBytes: 1_000_000 })
        expect(back.ok && new TextDecoder('utf-8', { ignoreBOM: true }).decode(back.bytes)).toBe(text)
      }),
      { numRuns: 50 },
    )
  })
})

describe('editing', () => {
  const edit = (text: string | Uint8Array, find: string, put: string) => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'f'), text)
    const answer = workspace.editText('f', { find, put })
    return { answer, after: readFileSync(join(root, 'f'), 'utf8') }
  }

  test('text that stands twice, nowhere or is empty changes nothing and says what to do', () => {
    expect(edit('a\nb\na\n', 'a', 'c').answer).toMatchObject({ ok: false, message: expect.stringContaining('2 times in "f" (lines 1, 3)') })
    expect(edit('aaa', 'aa', 'c').answer).toMatchObject({ ok: false, message: expect.stringContaining('2 times') })
    expect(edit('x', 'nope', 'c').answer).toMatchObject({ ok: false, message: expect.stringContaining('read the file') })
    expect(edit('', 'a', 'c').answer).toMatchObject({ ok: false, message: expect.stringContaining('the file is empty') })
    expect(edit('x', '', 'c').answer).toMatchObject({ ok: false, message: expect.stringContaining('is empty') })
    expect(edit('x', 'x', 'x').answer).toMatchObject({ ok: false, message: expect.stringContaining('nothing to do') })
    expect(edit('a\nb\na\n', 'a', 'c').after).toBe('a\nb\na\n')
  })

  test('a near miss shows the line as it really is', () => {
    const { answer } = edit('top\n\tif (ready) {\n', '  if (ready) {\n', 'x')
    expect(answer.ok ? '' : answer.message).toMatch(/line 2 is near.*\n\tif \(ready\) \{$/)
  })

  test('the one place is replaced and everything else stays, byte for byte', () => {
    const { answer, after } = edit('\ufeffone\ntwo\nthree', 'two\n', '$& 2\n')
    expect(answer).toMatchObject({ ok: true, line: 2 })
    expect(after).toBe('\ufeffone\n$& 2\nthree')
  })

  test('a file with CRLF is found with LF and keeps CRLF', () => {
    const { answer, after } = edit('a\r\nb\r\nc\r\n', 'a\nb\n', 'x\ny\n')
    expect(answer).toMatchObject({ ok: true, line: 1, note: expect.stringContaining('CRLF') })
    expect(after).toBe('x\r\ny\r\nc\r\n')
  })

  test('a file that someone else changes in the middle of an edit keeps their change', () => {
    using fixture = createFixture()
    const file = join(fixture.root, 'f')
    writeFileSync(file, 'one two')
    // The write asks the gate after it has read the text; at that moment the test interferes.
    const check: Check = (_path, access) => {
      if (access === 'write') writeFileSync(file, 'one two three')
      return { ok: true }
    }
    const answer = openWorkspace({ root: fixture.root, check }).editText('f', { find: 'two', put: '2' })
    expect(answer).toMatchObject({ ok: false, message: expect.stringContaining('changed by someone else') })
    expect(readFileSync(file, 'utf8')).toBe('one two three')
    expect(readdirSync(fixture.root)).toEqual(['f'])
  })

  test('a file that is not UTF-8 is left alone', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'f'), Uint8Array.of(0x61, 0xe9))
    expect(workspace.editText('f', { find: 'a', put: 'b' })).toMatchObject({
      ok: false,
      message: expect.stringContaining('not valid UTF-8'),
    })
    expect([...readFileSync(join(root, 'f'))]).toEqual([0x61, 0xe9])
  })
})
