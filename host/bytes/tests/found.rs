//! What fuzzing and the property tests found, kept.

use super::*;

fn holds(data: &[u8]) -> Vec<u8> {
    mutation::check(data);
    let findings = scanned(data);
    assert_eq!(
        findings.verdict,
        Verdict::Damaged,
        "{}: {:?}",
        data.escape_ascii(),
        findings.reason
    );
    mended(data, &findings).0
}

#[test]
fn a_value_missing_before_the_comma_of_a_cut_stays() {
    assert_eq!(holds(b"{\"id\":,\"ti&\x85\x85"), b"{\"id\":null}");
}

#[test]
fn a_cut_after_stray_commas_takes_them_all() {
    assert_eq!(holds(b"[{\"a\":1},\n,\n{\"b\":\"\xB7"), b"[{\"a\":1}\n\n]");
    assert_eq!(holds(b"[\"a\",,"), b"[\"a\"]");
}

#[test]
fn a_bare_word_before_a_cut_is_whole() {
    assert_eq!(holds(b"[x,"), b"[\"x\"]");
}

#[test]
fn a_key_without_its_first_quote_is_cut_from_its_first_letter() {
    assert_eq!(holds(b"{\"z\":0,\"a\":{ts\":26\xFF\xFFltc"), b"{\"z\":0,\"a\":{}}");
}

#[test]
fn a_form_feed_is_no_space() {
    let data = b"[{\"name\":\"a\"\x0C,\"pid\":1,\"tid\":2}]";
    assert_eq!(scanned(data).verdict, Verdict::Refused);
}

#[test]
fn ill_formed_bytes_among_unescaped_quotes_are_replaced() {
    let data = b"[{\"ph\":\"X\",\"name\":\"say \\\"hi\x00\"\x80\\u00e9 5\",\"pid\":9,\"tid\":9}]";
    let expected = "[{\"ph\":\"X\",\"name\":\"say \\\"hi\u{FFFD}\\\"\u{FFFD}\\u00e9 5\",\"pid\":9,\"tid\":9}]";
    assert_eq!(holds(data), expected.as_bytes());
}

#[test]
fn a_windows_path_stays_one_however_long_its_string_grows() {
    let data = [b"[\"C:\\tem".as_slice(), &[0xFF; 200], b"\\bin\"]"].concat();
    assert!(holds(&data).ends_with(b"\\bin\"]"));
}

#[test]
fn an_unescaped_quote_before_the_last_event_is_found_again_without_what_followed() {
    let data = b"[{\"ph\":\"M\",\"args\":{\"name\":\"a \"b\" c\"}},\n{\"ph\":\"X\",\"na";
    assert_eq!(holds(data), b"[{\"ph\":\"M\",\"args\":{\"name\":\"a \\\"b\\\" c\"}}\n]");
}

#[test]
fn a_character_cut_by_a_batch_is_not_written_too_early() {
    for length in 16_370..16_390 {
        let data = [b"[\"".as_slice(), &vec![b'a'; length], b"\xC2", &[b'b'; 50], b"\"]"].concat();
        let findings = scanned(&data);
        assert_eq!(found_again(&data, &findings), mended(&data, &findings).0);
        assert_eq!(findings.flaws.listed[0].offset, length as u64 + 2);
    }
}
