//! The network is as bad as it is said to be, and no worse.

use super::*;

/// A client and a server, with a proxy between them.
fn connected(proxy: &Proxy, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(proxy.addr()).unwrap();
    let (server, _) = listener.accept().unwrap();
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    }
    (client, server)
}

fn start() -> (Proxy, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    (Proxy::start(listener.local_addr().unwrap(), 1).unwrap(), listener)
}

fn reads(mut stream: &TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Whether nothing more comes, because the other side is gone.
fn is_cut(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(length) => length == 0,
        Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
    }
}

#[test]
fn everything_passes_both_ways() {
    let (proxy, listener) = start();
    let (mut client, mut server) = connected(&proxy, &listener);
    proxy.delay(Duration::from_millis(5));
    client.write_all(b"asked").unwrap();
    assert_eq!(reads(&server, 5), b"asked");
    server.write_all(b"answered").unwrap();
    assert_eq!(reads(&client, 8), b"answered");
    drop(client);
    assert!(is_cut(&server), "who hangs up is heard");
}

#[test]
fn bytes_arrive_late_when_their_client_is_long_gone() {
    let (proxy, listener) = start();
    let (mut client, mut server) = connected(&proxy, &listener);
    let late = Duration::from_millis(50);
    proxy.cut(Cut { way: Way::Up, after: 2, late: Some(late) });
    let before = crate::clock::now();
    client.write_all(b"abcdef").unwrap();
    assert_eq!(reads(&server, 2), b"ab");
    assert!(is_cut(&client));
    // What the server still says is lost, and does not close its side.
    server.write_all(b"answered").unwrap();
    assert_eq!(reads(&server, 4), b"cdef");
    assert!(crate::clock::now().saturating_duration_since(before) >= late);
    assert!(is_cut(&server));
}

#[test]
fn either_way_is_cut_at_any_byte() {
    for after in 0..4 {
        let (proxy, listener) = start();
        let (mut client, server) = connected(&proxy, &listener);
        proxy.cut(Cut { way: Way::Up, after, late: None });
        client.write_all(b"abcd").unwrap();
        assert_eq!(reads(&server, after), b"abcd"[..after]);
        assert!(is_cut(&server) && is_cut(&client));

        let (client, mut server) = connected(&proxy, &listener);
        proxy.cut(Cut { way: Way::Down, after, late: None });
        server.write_all(b"abcd").unwrap();
        assert_eq!(reads(&client, after), b"abcd"[..after]);
        assert!(is_cut(&server) && is_cut(&client));
    }
}

#[test]
fn who_is_silent_one_way_speaks_the_other_and_loses_nothing() {
    let (proxy, listener) = start();
    let (mut client, mut server) = connected(&proxy, &listener);
    proxy.silence(Way::Up);
    client.write_all(b"asked").unwrap();
    server.write_all(b"unasked").unwrap();
    assert_eq!(reads(&client, 7), b"unasked");
    server.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
    assert!(server.read(&mut [0]).is_err(), "nothing comes");
    proxy.speak(Way::Up);
    server.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(reads(&server, 5), b"asked");
}
