/** SHA-256 of a text's UTF-8 or of bytes, as 64 hex digits. */
export function sha256(content: string | Uint8Array): string {
  return Bun.CryptoHasher.hash('sha256', content, 'hex')
}
