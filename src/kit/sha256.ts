/** Computes SHA-256 of bytes, or of a text as UTF-8, as 64 hex digits. */
export function sha256(content: string | Uint8Array): string {
  return Bun.CryptoHasher.hash('sha256', content, 'hex')
}
